/**
 * Dion: orthonormal updates of low rank. Ahn and Xu 2025, Algorithm 1 over the data-parallel ranks of Algorithm 2,
 * https://arxiv.org/abs/2504.05295
 *
 *   B ← M + G                          this rank's own gradient
 *   P ← orth(mean_ranks(B Q))          PowerIter1; the matrix's owner orthonormalises for all ranks
 *   R ← mean_ranks(Bᵀ P)
 *   M ← B − (1 − μ) P Rᵀ               error feedback: M keeps what rank r did not carry
 *   Q ← R with unit columns            the same on every rank
 *   X ← (1 − η λ) X − η √(m/n) P Qᵀ    the factor √(m/n) of §2.1; the weight decay λ is not in the paper
 *
 * A column of R whose norm is at most ε times the largest is round-off: its column of Q stays, and X does not move
 * along it. This is decided on R, which is reduced, so a rank whose own gradient is 0 takes the same decision. Not in
 * the paper.
 *
 *   orientation     rows     P has the m rows of X, as printed
 *                   longer   P has the rows of the longer side, as in microsoft/dion: where m < n, X, G, M above are
 *                            their transposes. The two take different steps, so this option alone decides, not the
 *                            sharding.
 *   errorFeedback   false    M ← μ M + G, and P, R are those of M (§4.1)
 *                   own      a rank subtracts (1 − μ) P R_iᵀ with its own R_i = BᵀP, whose mean is R: X stays the same,
 *                            and the momenta of ranks with different data drift apart more slowly. Not in the paper.
 *   approximate     svd      P, R are the best approximation of mean_ranks(B) of rank r (§4.2), and all of B is sent
 *
 * Shapes: X, G, M, B (m, n)   P (m, r)   Q, R (n, r)   r ≪ m, n
 * Sent per step, for all matrices of a bucket; in bytes, if the ranks own equally much:
 *          2 messages   2 (P − 1)/P · 4 (m + n) r, where data parallel sends 2 (P − 1)/P · 4 m n
 *   svd    1 message    (P − 1)/P · 4 (m n + (m + n) r)
 * With means and computed values in bf16 it is half of it. With fewer matrices than ranks a computed mean in f32 goes
 * by slices, in twice as many messages and about twice the bytes (computed-mean.ts of @terse/exchange).
 */
import { copy } from "@terse/collectives";
import { addLowRank, normalizeColumns } from "@terse/native-optimizers";
import { call, empty, fromTypedArray, noGrad, scope, type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import { makesState } from "../kept-options.ts";
import type { Algorithm, Rules, Vector } from "./algorithm.ts";
import { type DionSettings, dionOptions, sizesOf } from "./dion-options.ts";
import { shardedDion } from "./dion-sharded.ts";
import { multiply, resultOf } from "./kernels.ts";
import { orthonormalize } from "./orthonormalize.ts";
import { randomMatrix } from "./random-floats.ts";
import type { State } from "./state.ts";

export interface DionState extends State {
  readonly elements: {
    M: Tensor; // momentum, and everything not yet sent
  };
  readonly replicated: {
    Q: Tensor; // right basis of the last step
  };
}

type Steps = Pick<Algorithm, "init" | "step" | "messages">;

/**
 * Dion: orthonormal updates of low rank. Ahn and Xu 2025, Algorithm 1; where the ranks have a weight axis, Algorithm 2
 * (dion-sharded.ts).
 */
export const dion = define({
  name: "dion",
  options: dionOptions,
  kept: () => ({ rank: makesState, orientation: makesState, seed: makesState }),

  create(options, where): Rules {
    const given = { ...options, where };
    const whole: Steps = wholeDion(given);
    const sharded: Steps = shardedDion(given);
    const of = ({ mesh }: Vector) => (mesh.weight.length > 1 ? sharded : whole);
    return {
      splits: "at segments",
      takes: "matrices",
      shards: true,
      init: (X, vector) => of(vector).init(X, vector),
      step: (X, G, state, exchange, context) => of(context.vector).step(X, G, state, exchange, context),
      messages: (vector, step, state) => of(vector).messages(vector, step, state),
    };
  },
});

function wholeDion(given: DionSettings): Pick<Algorithm<DionState>, "init" | "step" | "messages"> {
  const { momentum: μ, errorFeedback, approximate, weightDecay: λ, eps, seed } = given;
  return {
    init(X, vector) {
      const { columns, r } = sizesOf(vector, given);
      const Q = randomMatrix([columns, r], { seed, stream: vector.offset, device: X.device });
      return { elements: { M: zerosLike(X) }, replicated: { Q } };
    },

    async step(X, G, { elements: { M }, replicated: { Q } }, exchange, { step, lr: η, gradientScale, vector }) {
      const { m, n, rows, columns, r, transposed } = sizesOf(vector, given);
      const { owner } = vector;
      const { device } = X;
      using factors = empty([(rows + columns) * r], { device });
      using P = resultOf(() => factors.narrow(0, 0, rows * r).view(rows, r));
      using R = resultOf(() => factors.narrow(0, rows * r, columns * r).view(columns, r));

      // B ← M + G, in M's place
      noGrad(() => (errorFeedback ? M : M.mul_(μ)).add_(G, { alpha: gradientScale }));
      using B = transposed ? M.transpose(0, 1) : M.view(m, n);
      using Bᵀ = B.transpose(0, 1);

      if (approximate === "svd") {
        // P Rᵀ ← the best approximation of mean_ranks(B)
        using whole = B.contiguous();
        await exchange.computedMean(whole, { owner, compute: truncatedSvd([rows, columns], r, device), into: factors });
      } else {
        // P ← orth(mean_ranks(B Q))
        multiply(B, Q, P);
        const compute = orthonormalize(r, given.orthonormalize, seed + step, device);
        await exchange.computedMean(P, { owner, compute });

        // R ← mean_ranks(Bᵀ P)
        multiply(Bᵀ, P, R);
        await exchange.mean(R);
      }

      // M ← B − (1 − μ) P Rᵀ
      const [left, right] = transposed ? [R, P] : [P, R];
      const subtract = { rank: r, keep: 1, scale: μ - 1 };
      if (errorFeedback === true) addLowRank(M, left, right, subtract);
      if (errorFeedback === "own") {
        using own = noGrad(() => Bᵀ.matmul(P)); // R_i
        addLowRank(M, transposed ? own : P, transposed ? P : own, subtract);
      }

      // Q ← R with unit columns
      normalizeColumns(Q, R, { rank: r, threshold: eps });

      // X ← (1 − η λ) X − η √(m/n) P Qᵀ
      await exchange.agreed();
      addLowRank(X, left, right, { rank: r, keep: 1 - η * λ, scale: -η * Math.sqrt(m / n) });
    },

    messages(vector) {
      const { rows, columns, r } = sizesOf(vector, given);
      const { owner, n } = vector;
      if (approximate === "svd") return [{ kind: "computedMean", n, owner, result: (rows + columns) * r }];
      return [
        { kind: "computedMean", n: rows * r, owner },
        { kind: "mean", n: columns * r },
      ];
    },
  };
}

/**
 * The `compute` of a computed mean of B (rows, columns): U (rows, r) and V Σ (columns, r) of its singular value
 * decomposition.
 */
function truncatedSvd([rows, columns]: readonly [number, number], r: number, device: string) {
  return (mean: Float32Array, result: Float32Array): void =>
    noGrad(() =>
      scope(() => {
        const [U, Σ, Vᵀ] = call("aten::linalg_svd", fromTypedArray(mean, [rows, columns], { device }), false) as [
          Tensor,
          Tensor,
          Tensor,
        ];
        copy(result.subarray(0, rows * r), U.narrow(1, 0, r).contiguous());
        copy(result.subarray(rows * r), Vᵀ.transpose(0, 1).mul(Σ).narrow(1, 0, r).contiguous());
      }),
    );
}
