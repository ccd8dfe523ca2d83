/**
 * Deep Gradient Compression: the largest elements of what has accumulated are sent, with a momentum that waits with the
 * others. Lin, Han, Mao, Wang, Dally 2018, "Deep Gradient Compression: Reducing the Communication Bandwidth for
 * Distributed Training", Algorithm 1 and §3, https://arxiv.org/abs/1712.01887
 *
 *   g ← min(1, limit / (√P ‖g‖)) g          local gradient clipping, §3.2: `clip` is the limit
 *   u ← μ u + g                             momentum correction, §3.1; Nesterov: v ← v + μ u + g in the next line
 *   v ← v + u
 *   d ← v where it is one of the ⌈ratio · n⌉ largest of its layer, else 0
 *   v ← v − d,  u ← 0 where d was sent      momentum factor masking, §3.3
 *   g ← mean_ranks(d)                       every rank sends its d to every other one
 *
 * Vectors (biases, norms) are not worth it: g ← mean_ranks(g), u ← μ u + g, g ← u (or μ u + g). The momentum is here,
 * so under sgd without momentum this is the paper's method. With an optimizer that has a momentum of its own, set
 * `momentum: 0`.
 *
 * Warm-up (§3.3): for the first `warmup` steps, in equal parts, `paper` sends 25 %, 6.25 %, 1.5625 % and 0.4 % of the
 * elements; `exponential`, as the authors' code, ratio^(1/6) to ratio^(5/6) in five. The local norm is that of each
 * layer, as in the authors' code, not of all of the model, whose last gradient comes at the end of backward. From five
 * ranks on, 25 % of the elements to every rank are more bytes than a dense mean.
 *
 * Shapes: g, u, v, d (n)
 * Sent per step: 1 message; in bytes:
 *   a matrix   (P − 1)(4 k + ⌈k ⌈log₂ n⌉ / 8⌉), k = ⌈ratio · n⌉
 *   a vector   2 (P − 1)/P · 4 n
 */
import { sgdStep, sumOfSquares } from "@terse/native-optimizers";
import { flag, nonNegative, nonNegativeInteger, oneOf, unitIntervalFloat, v } from "@terse/options";
import { keep, noGrad, scope, type Tensor, zerosLike } from "@terse/tensor";
import type { Vector } from "../algorithms/algorithm.ts";
import type { State } from "../algorithms/state.ts";
import { define } from "../define.ts";
import { endsBefore } from "./ends-before.ts";
import type { CompressionRules } from "./gradient-compression.ts";
import { ratio, topOf } from "./largest.ts";

const options = v.object({
  ratio: v.optional(ratio, 0.001), // of a matrix's elements that are sent; 1 − the paper's sparsity
  momentum: v.optional(unitIntervalFloat, 0.9), // μ
  nesterov: v.optional(flag, false),
  factorMasking: v.optional(flag, true),
  clip: v.optional(nonNegative, 0), // limit of a layer's norm; 0: none
  warmup: v.optional(nonNegativeInteger, 0), // steps
  warmupRatios: v.optional(oneOf(["paper", "exponential"]), "paper"),
});

export interface DgcState extends State {
  readonly elements: {
    velocity: Tensor; // u, each rank's own; of a vector the same on every rank
    accumulated?: Tensor; // v, each rank's own
  };
}

/**
 * Deep Gradient Compression: sends the largest accumulated elements, with momentum correction. Lin et al. 2018,
 * Algorithm 1.
 */
export const dgc = define({
  name: "dgc",
  options,
  kept: ({ before, step }) =>
    before.warmup <= step ? { warmup: "the warm-up is over", warmupRatios: "the warm-up is over" } : {},
  under({ momentum: first }, { name, options }) {
    const { momentum = 0, beta1 = momentum } = options as { momentum?: number; beta1?: number };
    if (first === 0 || beta1 === 0) return [];
    const problem = `${first}, and ${name} has a momentum of its own, so there are two`;
    return [{ path: "momentum", problem, remedy: "set it to 0, or take sgd without momentum" }];
  },
  inRun: ({ warmup }, steps) => ({ problems: endsBefore(steps, { warmup }) }),

  create(given): CompressionRules<DgcState> {
    const { momentum, nesterov, factorMasking, clip, warmup } = given;
    const stages = given.warmupRatios === "paper" ? [0.25, 0.0625, 0.015625, 0.004] : exponential(given.ratio);
    const codecAt = (step: number, n: number) =>
      topOf(
        n,
        step < warmup ? Math.max(given.ratio, stages[Math.floor((step * stages.length) / warmup)]!) : given.ratio,
      );
    const correct = (into: Tensor, u: Tensor, g: Tensor, gradientScale: number) =>
      // u ← μ u + g, then into ← into + u, in one pass: the step of SGD with η = −1
      sgdStep(into, u, g, { lr: -1, momentum, nesterov, gradientScale, dampening: 0, weightDecay: 0, first: false });

    return {
      splits: "at segments",

      init: (θ, vector) => ({
        elements: { velocity: zerosLike(θ), ...(isMatrix(vector) && { accumulated: zerosLike(θ) }) },
      }),

      async mean(g, { elements: { velocity: u, accumulated: v } }, exchange, { step, vector }) {
        if (!v) {
          await exchange.mean(g);
          using mean = noGrad(() => g.clone());
          noGrad(() => g.zero_());
          return correct(g, u, mean, 1);
        }
        const limit = clip / Math.sqrt(exchange.ranks);
        const norm = clip > 0 ? Math.sqrt(sumOfSquares(g)) : 0;
        correct(v, u, g, norm > limit ? limit / norm : 1);

        using rest = keep(zerosLike(v));
        noGrad(() => g.zero_());
        await exchange.sparse(v, { into: g, codec: codecAt(step, vector.n), error: rest });
        scope(() =>
          noGrad(() => {
            if (factorMasking) u.mul_(rest.eq(v));
            v.copy_(rest);
          }),
        );
      },

      messages: (vector, step) => [
        isMatrix(vector)
          ? { kind: "sparse", n: vector.n, codec: codecAt(step, vector.n) }
          : { kind: "mean", n: vector.n, offset: vector.offset },
      ],
    };
  },
});

const isMatrix = ({ segments: [segment] }: Vector): boolean => segment!.shape.length > 1;

const exponential = (ratio: number): number[] => [1, 2, 3, 4, 5].map((stage) => ratio ** (stage / 6));
