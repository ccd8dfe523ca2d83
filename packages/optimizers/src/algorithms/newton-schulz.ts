/**
 * The orthogonal factor of a matrix, approximately, by Newton–Schulz iterations of the fifth order. Jordan et al. 2024,
 * https://kellerjordan.github.io/posts/muon/; the form is that of torch.optim.Muon.
 *
 *   X ← G / max(‖G‖_F, ε),  transposed if it has more rows than columns
 *   X ← a X + (b A + c A²) X,  A = X Xᵀ          once for each triple a, b, c of `coefficients`
 *
 * Of a wide matrix the iterations need no more than R = X Xᵀ, which each of them maps to a polynomial of itself (Gram
 * Newton–Schulz, Zhang, Amsel, Chen and Dao 2026, https://dao-lab.ai/blog/2026/gram-newton-schulz):
 *
 *   P = a I + b R + c R²,  Q ← P Q,  R ← P R P,  at the end X ← Q X
 *
 * Five iterations are 34 m³ + 4 m² n multiplications and additions, not 10 m³ + 20 m² n: with n = 4 m 5/9 of them. R
 * has the squares of the singular values, so what rounding adds to it covers those below some 0.0005 of the norm, and
 * an iteration multiplies that by up to a². Before it could count, X ← Q X, and R is computed anew. bf16 is too coarse
 * for it.
 *
 * All these products but those with X are symmetric. Of large ones only blocks on and below the diagonal are computed,
 * and those below it copied above it: with 2048 rows 5/8 of the products. They differ from the whole by rounding, so
 * small ones, where it saves little, stay as they are; and those in bf16 on units for matrices, which are faster with
 * the whole.
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

/** Options of Muon and SignMuon. */
interface Orthogonalizing {
  readonly momentum: number; // μ
  readonly nesterov: boolean;
  readonly nsType: "auto" | "f32" | "bf16";
  readonly eps: number;
}

/**
 * M ← μ M + (1 − μ) g,  G ← U = NS(M), with Nesterov NS(μ M + (1 − μ) g). G holds the gradient, which `gradientScale`
 * multiplies first. G (m, n), `momenta` the m n elements of M.
 */
export function orthogonalize(
  momenta: Tensor,
  G: Tensor,
  gradientScale: number,
  coefficients: readonly Coefficients[],
  { momentum, nesterov, nsType, eps }: Orthogonalizing,
): void {
  const dtype = nsType === "auto" ? (bf16Units(momenta.device) ? "bf16" : "f32") : nsType;
  noGrad(() =>
    scope(() => {
      if (gradientScale !== 1) G.mul_(gradientScale);
      const M = momenta.view(G.shape);
      M.lerp_(G, 1 - momentum);
      G.copy_(newtonSchulz(nesterov ? G.lerp_(M, momentum) : M, { coefficients, eps, dtype }));
    }),
  );
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
      const [rows, columns] = X.shape as [number, number];
      const isWide = columns >= 2 * rows && rows >= leastRows && X.dtype !== "bf16";
      X = isWide ? byGram(X, coefficients) : iterated(X, coefficients);
      return m > n ? X.transpose(0, 1) : X;
    }),
  );
}

function iterated(X: Tensor, coefficients: readonly Coefficients[]): Tensor {
  return coefficients.reduce((X, [a, b, c]) => {
    const A = symmetric(X, X.transpose(0, 1));
    const B = symmetric(A, A, { b, c });
    return X.addmm(B, X, { beta: a });
  }, X);
}

const leastRows = 128; // of a wide matrix; with fewer the calls cost as much as the products
const mostGrowth = 3e4; // of an eigenvalue near 0 of R, before R is computed anew

/** The same from R = X Xᵀ. */
function byGram(X: Tensor, coefficients: readonly Coefficients[]): Tensor {
  let [R, growth] = [symmetric(X, X.transpose(0, 1)), 1];
  let Q: Tensor | undefined; // the product of the polynomials since R was computed from X
  for (const [i, [a, b, c]] of coefficients.entries()) {
    const P = symmetric(R, R, { b, c });
    P.diagonal().add_(a);
    Q = Q ? symmetric(P, Q) : P;
    if (i === coefficients.length - 1) break;
    growth *= a * a;
    if (growth <= mostGrowth) R = symmetric(P, symmetric(R, P));
    else {
      X = Q.matmul(X);
      [R, Q, growth] = [symmetric(X, X.transpose(0, 1)), undefined, 1];
    }
  }
  return Q ? Q.matmul(X) : X;
}

const largest = 1023; // rows of a block that is computed as a whole

/** Y Z, which is symmetric; with `sum` b Y + c Y Z, for a symmetric Y. Y (m, n), Z (n, m) → (m, m) */
function symmetric(Y: Tensor, Z: Tensor, sum?: { b: number; c: number }): Tensor {
  const m = Y.shape[0]!;
  if (m <= largest || (Y.dtype === "bf16" && bf16Units(Y.device) === "matrix"))
    return sum ? Y.addmm(Y, Z, { beta: sum.b, alpha: sum.c }) : Y.matmul(Z);
  const result = empty([m, m], { dtype: Y.dtype, device: Y.device });
  fill(0, m);
  return result;

  function block(rows: readonly [number, number], columns: readonly [number, number]): void {
    const [P, Q] = [Y.narrow(0, ...rows), Z.narrow(1, ...columns)];
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
