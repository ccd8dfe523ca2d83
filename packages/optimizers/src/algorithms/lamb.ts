/**
 * LAMB: Adam whose step is scaled, layer by layer, to the size of the layer's weights. You et al. 2020, Algorithm 2,
 * https://arxiv.org/abs/1904.00962; as Li et al. 2021, equation (1), print it, https://arxiv.org/abs/2104.06069
 *
 *   g ← mean_ranks(g)                        all-reduce, n floats
 *   m ← β₁ m + (1 − β₁) g
 *   v ← β₂ v + (1 − β₂) g²
 *   u ← m / (√v + ε) + λ θ
 *   c ← clip(‖θ‖ / ‖u‖, min, max)            each layer's own; all-zero weights give min
 *   θ ← θ − η c u
 *
 * `variant` names what public code does instead, both with c = 1 where a norm is 0, whatever the bounds:
 *   apex        u with m̂ and v̂, Adam's corrections; c is not clipped, and is 1 without weight decay
 *   deepspeed   u as above, η √(1 − β₂ᵗ) / (1 − β₁ᵗ) in place of η; c between 0.01 and 10
 *
 * Shapes: θ, g, m, v, u (n)   c: a number for each layer
 * Sent per step: 1 message, 2 (P − 1)/P · 4 n bytes.
 */
import { type AdamUpdate, accumulateAndMeasure, adamNorms, applyAdamUpdate } from "@terse/native-optimizers";
import { nonNegativeFloat, oneOf, positiveFloat, unitIntervalFloat, v } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import type { Rules } from "./algorithm.ts";
import { layersOf } from "./layers.ts";
import type { State } from "./state.ts";

const options = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁
  beta2: v.optional(unitIntervalFloat, 0.999), // β₂
  eps: v.optional(positiveFloat), // ε: 1e-6, 1e-8 of deepspeed
  weightDecay: v.optional(nonNegativeFloat, 0.01), // λ
  variant: v.optional(oneOf(["paper", "apex", "deepspeed"]), "paper"),
  minRatio: v.optional(positiveFloat), // bounds of c: 0.01 and 0.3 of the paper's BERT, 0.01 and 10 of deepspeed
  maxRatio: v.optional(positiveFloat),
});

export interface LambState extends State {
  readonly elements: {
    m: Tensor; // first moment, the same on every rank
    v: Tensor; // second moment, the same on every rank
  };
}

type Bounds = Partial<Pick<v.InferOutput<typeof options>, "variant" | "minRatio" | "maxRatio">>;

/** The bounds of c: those that were given, or those of the variant. */
function boundsOf({ variant, minRatio, maxRatio }: Bounds): [min: number, max: number] {
  const [low, high] = variant === "apex" ? [0, Number.POSITIVE_INFINITY] : [0.01, variant === "deepspeed" ? 10 : 0.3];
  return [minRatio ?? low, maxRatio ?? high];
}

export const ratioBounds = {
  option: "minRatio",
  when(given: Bounds) {
    const [min, max] = boundsOf(given);
    return min > max;
  },
  because: (given: Bounds) => `${boundsOf(given).join(" is more than maxRatio, ")}`,
  remedy: "take minRatio ≤ maxRatio",
} as const;

/** c, from ‖θ‖ and ‖u‖: their ratio in its bounds. */
export function clippedRatio(given: Bounds): (weights: number, update: number) => number {
  const [min, max] = boundsOf(given);
  return (weights, update) => (weights === 0 ? min : Math.min(Math.max(weights / update, min), max)); // 0/0 too is min
}

/**
 * LAMB: Adam with a step of each layer in proportion to its weights; ranks average their gradients. You et al. 2020,
 * Algorithm 2.
 */
export const lamb = define({
  name: "lamb",
  options,
  conflicts: [ratioBounds],

  create(given): Rules<LambState> {
    const { beta1, beta2, weightDecay, variant } = given;
    const eps = given.eps ?? (variant === "deepspeed" ? 1e-8 : 1e-6);
    const clip = clippedRatio(given);
    /** c, from ‖θ‖ and ‖u‖. */
    const ratioOf = (weights: number, update: number) => {
      const isOne = weights === 0 || update === 0 || (variant === "apex" && weightDecay === 0);
      return variant !== "paper" && isOne ? 1 : clip(weights, update);
    };
    const corrections = (step: number) => ({
      first: 1 / (1 - beta1 ** (step + 1)),
      second: 1 / Math.sqrt(1 - beta2 ** (step + 1)),
    });
    /** u of step t. */
    const updateOf = (step: number): AdamUpdate => {
      const { first, second } = variant === "apex" ? corrections(step) : { first: 1, second: 1 };
      return { first, second, eps, weightDecay };
    };
    return {
      splits: "anywhere", // between layers
      takesMean: true,
      variance: { beta2 },
      trustRatio: ({ θ, elements: { m, v } }, step) => ratioOf(...adamNorms(θ, m!, v!, updateOf(step))),

      init: (θ) => ({ elements: { m: zerosLike(θ), v: zerosLike(θ) } }),

      async step(θ, g, { elements: { m, v } }, exchange, { step, lr: η, vector }) {
        const gradientScale = await exchange.meanGradient(g);
        await exchange.agreed();

        const u = updateOf(step);
        const { first, second } = corrections(step);
        const rate = variant === "deepspeed" ? (η * first) / second : η;
        const moments = { beta1, beta2, gradientScale };
        const layers = layersOf(vector, { θ, m, v, g });
        const ratios = layers.map((of) => ratioOf(...accumulateAndMeasure(of.θ, of.m, of.v, of.g, moments, u)));
        for (const [i, of] of layers.entries()) applyAdamUpdate(of.θ, of.m, of.v, { ...u, rate: rate * ratios[i]! });
      },

      messages: () => [{ kind: "meanGradient" }],
    };
  },
});
