/**
 * The orthogonal factor of a matrix, approximately, by Newton–Schulz iterations of the fifth order. Jordan et al. 2024,
 * https://kellerjordan.github.io/posts/muon/; the form is that of torch.optim.Muon.
 *
 *   X ← G / max(‖G‖_F, ε),  transposed if it has more rows than columns
 *   X ← a X + (b A + c A²) X,  A = X Xᵀ          steps times
 *
 * With G = U Σ Vᵀ the result is U f(Σ) Vᵀ, where f applies a x + b x³ + c x⁵ steps times: the standard coefficients send singular values
 * above 0.05 of the norm to between 0.68 and 1.14, not to 1.
 */
import { noGrad, scope, type Tensor } from "@terse/tensor";

export interface NewtonSchulzOptions {
  readonly coefficients: readonly [a: number, b: number, c: number];
  readonly steps: number;
  readonly eps: number; // ε
  /** The type that it computes in; that of G unless given. */
  readonly dtype?: "f32" | "bf16" | undefined;
}

/** G (m, n) → (m, n), of the dtype that it computes in. */
export function newtonSchulz(G: Tensor, { coefficients: [a, b, c], steps, eps, dtype }: NewtonSchulzOptions): Tensor {
  const [m, n] = G.shape as [number, number];
  return noGrad(() =>
    scope(() => {
      const typed = dtype ? G.to(dtype) : G;
      let X = m > n ? typed.transpose(0, 1) : typed;
      X = X.div(X.norm().clamp({ min: eps }));
      for (let step = 0; step < steps; step++) {
        const A = X.matmul(X.transpose(0, 1));
        const B = A.addmm(A, A, { beta: b, alpha: c });
        X = X.addmm(B, X, { beta: a });
      }
      return m > n ? X.transpose(0, 1) : X;
    }),
  );
}
