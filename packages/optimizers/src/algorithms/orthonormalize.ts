/**
 * Orthonormal columns that span the columns of P (m, r), in the order of Gram and Schmidt: P = Q U with QᵀQ = 1 and U
 * upper triangular. An owner computes them for all ranks (`exchange.computedMean`), because the last bits of libtorch's
 * QR depend on the processor.
 *
 *   householder-qr   libtorch's QR. Of a P of less than full rank, the columns past its rank are orthonormal too.
 *   cholesky-qr      randomised: U₁ from the QR of S P, then U₂ from the Cholesky factor of (P U₁⁻¹)ᵀ (P U₁⁻¹). Only
 *                    matrix products and r × r solves touch all of P, so it is faster for m ≫ r. S (k, m) is random,
 *                    k = 128 ⌈1.25 r / 128⌉ as in microsoft/dion. It is householder-qr where m < k, and where U₁ shows
 *                    that P has less than full rank. Fan, Guo, Higgins, Kannan and Szyld 2024, "CholeskyQR with
 *                    randomization and pivoting"
 */
import { copy } from "@terse/collectives";
import { oneOf } from "@terse/options";
import {
  call,
  fromTypedArray,
  manualSeed,
  noGrad,
  randn,
  randomState,
  scope,
  setRandomState,
  type Tensor,
} from "@terse/tensor";

export const orthonormalizations = oneOf(["householder-qr", "cholesky-qr"]);
export type Orthonormalization = "householder-qr" | "cholesky-qr";

/**
 * The `compute` of a computed mean of m r floats: the same number of floats. `seed` of the sketch: another one for each
 * step.
 */
export function orthonormalize(r: number, method: Orthonormalization, seed: number, device = "cpu") {
  return (mean: Float32Array, result: Float32Array): void =>
    noGrad(() =>
      scope(() => {
        const P = fromTypedArray(mean, [mean.length / r, r], { device });
        copy(result, (method === "cholesky-qr" ? choleskyQr(P, seed) : householderQr(P)).contiguous());
      }),
    );
}

function householderQr(P: Tensor): Tensor {
  const [Q] = call("aten::linalg_qr", P, "reduced") as [Tensor, Tensor];
  return Q;
}

function choleskyQr(P: Tensor, seed: number): Tensor {
  const [m, r] = P.shape as [number, number];
  const k = 128 * Math.ceil((1.25 * r) / 128);
  if (m < k) return householderQr(P);
  const S = normal([k, m], seed).to({ device: P.device });
  const [, U1] = call("aten::linalg_qr", S.matmul(P), "r") as [Tensor, Tensor];
  const diagonal = U1.diagonal().abs();
  // P is not of full rank, or not finite.
  if (!(diagonal.amin().item() > 1e-5 * diagonal.amax().item())) return householderQr(P);
  const sketched = solveRight(P, U1);
  const [U2, failed] = call("aten::linalg_cholesky_ex", sketched.transpose(0, 1).matmul(sketched), true) as [
    Tensor,
    Tensor,
  ];
  if (failed.item() !== 0) return householderQr(P);
  return solveRight(sketched, U2);
}

/** P U⁻¹ */
const solveRight = (P: Tensor, U: Tensor): Tensor =>
  call("aten::linalg_solve_triangular", U, P, true, false, false) as Tensor;

/** Standard normal numbers from this seed; the state of libtorch's generator does not change. */
function normal(shape: readonly number[], seed: number): Tensor {
  const state = randomState();
  manualSeed(seed);
  const drawn = randn(shape);
  setRandomState(state);
  return drawn;
}
