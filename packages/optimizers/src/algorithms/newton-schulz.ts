/**
 * The orthogonal factor of a matrix, approximately, by Newton–Schulz iterations of the fifth order. Jordan et al. 2024,
 * https://kellerjordan.github.io/posts/muon/; the form is that of torch.optim.Muon.
 *
 *   X ← G / max(‖G‖_F, ε),  transposed if it has more rows than columns
 *   X ← a X + (b A + c A²) X,  A = X Xᵀ          once for each triple a, b, c of `coefficients`
 *
 * A and b A + c A² are symmetric. Of large ones only blocks on and below the diagonal are computed, and those below it
 * copied above it: with 2048 rows 5/8 of the products. They differ from `A = X Xᵀ` as it stands by rounding, so small
 * ones, where it saves little, stay as they are; and those in bf16 on units for matrices, which are faster with the
 * whole.
 *
 * With G = U Σ Vᵀ the result is U f(Σ) Vᵀ, where f applies a x + b x³ + c x⁵ for one triple after the other: the
 * standard coefficients send singular values above 0.05 of the norm to between 0.68 and 1.14, not to 1.
 */
import { bf16Units, call, empty, noGrad, scope, type Tensor } from "@terse/tensor";

export type Coefficients = readonly [a: number, b: number, c: number];

export interface NewtonSchulzOptions {
  readonly coefficients: readonly Coefficients[]; // of one iteration after the other
  readonly eps: number; // ε
  /** The type that it computes in; that of G unless given. */
  readonly dtype?: "f32" | "bf16" | undefined;
}

/** G (m, n) → (m, n), of the dtype that it computes in. */
export function newtonSchulz(G: Tensor, { coefficients, eps, dtype }: NewtonSchulzOptions): Tensor {
  const [m, n] = G.shape as [number, number];
  return noGrad(() =>
    scope(() => {
      const typed = dtype ? G.to(dtype) : G;
      let X = m > n ? typed.transpose(0, 1) : typed;
      const norm = X.norm().clamp({ min: eps });
      X = typed.dtype === G.dtype ? X.div(norm) : X.div_(norm);
      for (const [a, b, c] of coefficients) {
        const A = symmetric(X);
        const B = symmetric(A, { b, c });
        X = X.addmm(B, X, { beta: a });
      }
      return m > n ? X.transpose(0, 1) : X;
    }),
  );
}

const largest = 1023; // rows of a block that is computed as a whole

/** Y Yᵀ; with `sum` b Y + c Y², for a symmetric Y. Y (m, n) → (m, m) */
function symmetric(Y: Tensor, sum?: { b: number; c: number }): Tensor {
  const m = Y.shape[0]!;
  if (m <= largest || (Y.dtype === "bf16" && bf16Units(Y.device) === "matrix"))
    return sum ? Y.addmm(Y, Y, { beta: sum.b, alpha: sum.c }) : Y.matmul(Y.transpose(0, 1));
  const result = empty([m, m], { dtype: Y.dtype, device: Y.device });
  fill(0, m);
  return result;

  function block(rows: readonly [number, number], columns: readonly [number, number]): void {
    const [P, Q] = [Y.narrow(0, ...rows), Y.narrow(0, ...columns).transpose(0, 1)];
    const of = (whole: Tensor) => whole.narrow(0, ...rows).narrow(1, ...columns);
    if (sum) call("aten::addmm.out", of(Y), P, Q, sum.b, sum.c, of(result));
    else call("aten::mm.out", P, Q, of(result));
  }

  /** The block on the diagonal that begins at row `begin`. */
  function fill(begin: number, length: number): void {
    if (length <= largest) {
      block([begin, length], [begin, length]);
      return;
    }
    const half = Math.floor(length / 2);
    const [upper, lower] = [
      [begin, half],
      [begin + half, length - half],
    ] as const;
    fill(...upper);
    fill(...lower);
    block(lower, upper);
    const above = result.narrow(0, ...upper).narrow(1, ...lower);
    above.copy_(
      result
        .narrow(0, ...lower)
        .narrow(1, ...upper)
        .transpose(0, 1),
    );
  }
}
