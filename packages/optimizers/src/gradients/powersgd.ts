/**
 * PowerSGD: a matrix gradient as the product of two thin ones, by one step of power iteration. Vogels, Karimireddy,
 * Jaggi 2019, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization", Algorithms 1 and 2,
 * https://arxiv.org/abs/1905.13727
 *
 *   M ← g + e                       e: the rank's own error
 *   P ← orth(mean_ranks(M Q))       the matrix's owner orthonormalises for all ranks
 *   Q ← mean_ranks(Mᵀ P)
 *   g ← P Qᵀ,  e ← M − P Qᵀ
 *
 * Options and defaults are those of PyTorch's hook, but for `startPowerSGDIter`: its 1000 would be longer than many
 * runs. Sent as they are, beside P: vectors, matrices where (m + n) r · minCompressionRate ≥ m n, and every gradient
 * before step `startPowerSGDIter`. Q stays for the next step (`warmStart`), or is drawn anew. The hook orthonormalises
 * Q before it multiplies. Here its columns get the length 1: otherwise M Q would have the square of the gradient's
 * size, which f32 cannot hold of very small and very large ones. Neither changes a P but in round-off. Householder's QR
 * divides by no norm, so a gradient of 0 needs no `orthogonalization_epsilon`.
 *
 * Shapes: g, e, M (m, n): all but the first axis are one   P (m, r)   Q (n, r)
 * Sent per step: 2 messages for all matrices of a bucket; in bytes, if the ranks own equally much:
 *   a matrix               2 (P − 1)/P · 4 (m + n) r
 *   what is sent as it is  2 (P − 1)/P · 4 m n
 */
import { addLowRank, normalizeColumns } from "@terse/native-optimizers";
import { finite, flag, nonNegativeInteger, positiveInteger, v } from "@terse/options";
import { empty, keep, noGrad, type Segment, type Tensor, zerosLike } from "@terse/tensor";
import type { Vector } from "../algorithms/algorithm.ts";
import { multiply } from "../algorithms/kernels.ts";
import { orthonormalize } from "../algorithms/orthonormalize.ts";
import { randomMatrix } from "../algorithms/random-floats.ts";
import type { State } from "../algorithms/state.ts";
import { define } from "../define.ts";
import { makesState } from "../kept-options.ts";
import { endsBefore } from "./ends-before.ts";
import type { CompressionRules } from "./gradient-compression.ts";

const options = v.object({
  matrixApproximationRank: v.optional(positiveInteger, 1), // r
  startPowerSGDIter: v.optional(nonNegativeInteger, 0), // the first step that compresses; the hook's default is 1000
  // Below 1 the factors could be larger than the matrix.
  minCompressionRate: v.optional(v.pipe(finite, v.minValue(1)), 2),
  useErrorFeedback: v.optional(flag, true),
  warmStart: v.optional(flag, true),
  randomSeed: v.optional(nonNegativeInteger, 0), // of the first Q
});

export interface PowersgdState extends State {
  readonly elements?: {
    gradientError?: Tensor; // e, each rank's own
  };
  readonly replicated?: {
    Q?: Tensor; // of the last step, the same on every rank
  };
}

/** PowerSGD: a matrix gradient as the product of two thin matrices. Vogels et al. 2019, Algorithms 1 and 2. */
export const powersgd = define({
  name: "powersgd",
  options,
  kept: ({ before, step }) => ({
    matrixApproximationRank: makesState,
    minCompressionRate: makesState,
    useErrorFeedback: makesState,
    warmStart: makesState,
    ...(before.warmStart && { randomSeed: makesState }),
    ...(before.startPowerSGDIter <= step && { startPowerSGDIter: "that step is over" }),
  }),
  inRun: ({ startPowerSGDIter }, steps) => ({ problems: endsBefore(steps, { startPowerSGDIter }) }),

  create(given, where): CompressionRules<PowersgdState> {
    const { matrixApproximationRank: r, startPowerSGDIter, minCompressionRate, useErrorFeedback, warmStart } = given;

    /** The sizes of a matrix that is compressed, for which r < min(m, n). */
    const sizesOf = ({ segments: [segment] }: Vector) => {
      const { m, n } = rowsAndColumns(segment!);
      return (m + n) * r * minCompressionRate < m * n ? { m, n } : undefined;
    };
    const drawn = (n: number, { offset }: Vector, step: number, device: string) =>
      randomMatrix([n, r], { seed: given.randomSeed + step, stream: offset, device });

    return {
      splits: "at segments",

      remark(segments) {
        const largest = segments.map((segment) => {
          const { m, n } = rowsAndColumns(segment);
          return Math.ceil((m * n) / ((m + n) * minCompressionRate)) - 1; // the largest r that compresses it
        });
        const most = Math.max(...largest);
        if (r <= most) return undefined;
        if (most < 1)
          return {
            path: `${where}.minCompressionRate`,
            problem: `no matrix of this model shrinks ${minCompressionRate} times, even with a rank of 1, and all gradients are sent whole`,
          };
        return {
          path: `${where}.matrixApproximationRank`,
          problem: `with ${r} no matrix of this model is compressed, and all gradients are sent whole`,
          remedy: `take at most ${most}`,
        };
      },

      init(θ, vector) {
        const sizes = sizesOf(vector);
        if (!sizes) return {};
        return {
          elements: useErrorFeedback ? { gradientError: zerosLike(θ) } : {},
          replicated: warmStart ? { Q: drawn(sizes.n, vector, 0, θ.device) } : {},
        };
      },

      async mean(g, { elements, replicated }, exchange, { step, vector }) {
        if (step < startPowerSGDIter) return exchange.mean(g);
        const { owner } = vector;
        const sizes = sizesOf(vector);
        if (!sizes) return exchange.computedMean(g, { owner, compute: itself });

        const { m, n } = sizes;
        const e = elements?.gradientError;
        const { device } = g;
        using P = keep(empty([m, r], { device }));
        using R = keep(empty([n, r], { device }));

        // M ← g + e, in e's place
        using M = keep((e ? noGrad(() => e.add_(g)) : g).view(m, n));

        // P ← orth(mean_ranks(M Q))
        {
          using basis = warmStart ? keep(noGrad(() => replicated!.Q!.clone())) : drawn(n, vector, step, device);
          normalizeColumns(R, basis, { rank: r, threshold: 0 }); // R is computed below
          multiply(M, basis, P);
        }
        await exchange.computedMean(P, { owner, compute: orthonormalize(r, "householder-qr", 0, device) });

        // Q ← mean_ranks(Mᵀ P)
        {
          using Mᵀ = M.transpose(0, 1);
          multiply(Mᵀ, P, R);
        }
        await exchange.mean(R);

        // g ← P Qᵀ,  e ← M − P Qᵀ
        addLowRank(g, P, R, { rank: r, keep: 0, scale: 1 });
        if (e) noGrad(() => e.sub_(g));
        if (warmStart) noGrad(() => replicated!.Q!.copy_(R));
      },

      messages(vector, step) {
        const { n: length, offset, owner } = vector;
        if (step < startPowerSGDIter) return [{ kind: "mean", n: length, offset }];
        const sizes = sizesOf(vector);
        if (!sizes) return [{ kind: "computedMean", n: length, owner }];
        return [
          { kind: "computedMean", n: sizes.m * r, owner },
          { kind: "mean", n: sizes.n * r },
        ];
      },
    };
  },
});

/** All axes but the first are one; a vector is a row. */
function rowsAndColumns({ shape, length }: Segment): { m: number; n: number } {
  const m = shape.length < 2 ? 1 : shape[0]!;
  return { m, n: length / m };
}

const itself = (mean: Float32Array, result: Float32Array): void => result.set(mean);
