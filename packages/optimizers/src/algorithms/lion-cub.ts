/**
 * Lion Cub: Lion whose ranks vote with one bit. Ishikawa, Ben-Nun, Van Essen, Yokota, Dryden 2024, https://arxiv.org/abs/2411.16462
 *
 *   u ← sign(β₁ m + (1 − β₁) g)      g, m: this rank's own gradient and momentum
 *   m ← β₂ m + (1 − β₂) g
 *   v ← majority_ranks(u)            one bit up, one bit down; a tie is + and − on alternate steps (§3.2)
 *   θ ← θ − η (v + λ θ)              Algorithm 1, line 6, prints this with a sign slip; this is the slides' form
 *
 * With p bits, 2 to 8, in place of signs (§4.2 and §6; needs no synchronisation of momenta, §5.2):
 *
 *   c ← β₁ m + (1 − β₁) g
 *   q ← Q₁(c)                        whole numbers from −s to s = 2^(p − 1) − 1, which stands for twice the mean |c| of the layer;
 *                                    with sumBits: 8, s = ⌊127/P⌋, as in the authors' code
 *   v ← sign(Σ_ranks q)              p bits up, two planes of bits down; 0 does not move
 *
 * With s = 1 a layer whose |c| are all equal has q = 0 and does not move: |c| is half a level, and a half is rounded to the even level. A
 * layer of one element is always such a layer, and refused.
 *
 * Shapes: θ, g, m (n)   u, v: n bits
 * Sent per step: 1 message, 2 (P − 1)/P · n/8 bytes; 32-bit data parallel sends 32 times that.
 * With p bits (p + 2)/2 as many; c is held meanwhile, 4 n bytes.
 * With momentumSync, after every k-th step: m ← mean_ranks(m) of some layers, 4 bytes an element and way (momentum-sync.ts).
 */
import { l1, signAt } from "@terse/codecs";
import {
  nonNegativeFloat,
  OptionsError,
  oneOf,
  parseOptions,
  positiveInteger,
  unitIntervalFloat,
  v,
} from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import { momentumSyncOptions } from "../momentum-sync.ts";
import type { Algorithm, Vector } from "./algorithm.ts";
import { applyVote, lionMix, lionVote } from "./kernels.ts";
import type { State } from "./state.ts";

export const lionCubOptions = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁: weight of the momentum in the vote
  beta2: v.optional(unitIntervalFloat, 0.99), // β₂: weight of the momentum in itself
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  bits: v.optional(v.pipe(positiveInteger, v.maxValue(8)), 1), // p: bits of a rank's vote
  sumBits: v.optional(v.pipe(v.number(), v.integer(), v.minValue(2), v.maxValue(8))), // in place of bits: as many levels as leave the sum in these bits, s = ⌊127/P⌋ for 8
  zero: v.optional(oneOf(["plus", "minus", "alternate"])), // only with one bit: the vote of an exact 0; alternate if absent
  tie: v.optional(oneOf(["plus", "minus", "alternate"])), // only with one bit: the outcome of as many votes each way; alternate if absent
  momentumSync: v.optional(momentumSyncOptions, {}), // which layers' m is averaged, and when (§5.1); none
});

export interface LionCubState extends State {
  readonly elements: {
    m: Tensor; // this rank's own; ranks drift apart unless it is synchronised
  };
}

export function lionCub(options: v.InferInput<typeof lionCubOptions> = {}): Algorithm<LionCubState> {
  const parsed = parseOptions(lionCubOptions, options, "lion-cub");
  const { beta1, beta2, weightDecay, bits, sumBits, zero = "alternate", tie = "alternate", momentumSync } = parsed;
  if (bits > 1 || sumBits !== undefined) {
    const given = sumBits === undefined ? `bits: ${bits}` : `sumBits: ${sumBits}`;
    if (bits > 1 && sumBits !== undefined)
      throw new OptionsError([`lion-cub.sumBits: it chooses the bits, and bits is ${bits}; leave one of them out`]);
    const unused = (["zero", "tie"] as const).filter((option) => parsed[option] !== undefined);
    if (unused.length > 0)
      throw new OptionsError(
        unused.map(
          (option) =>
            `lion-cub.${option}: with ${given} levels can be 0, which does not move, and ${option} is ${parsed[option]}; leave ${option} out, or take one bit`,
        ),
      );
    const levels = sumBits === undefined ? levelsOfBits(bits) : levelsOfSum(sumBits);
    return withLevels(levels, { beta1, beta2, weightDecay, momentumSync });
  }
  return {
    name: "lion-cub",
    splits: "anywhere", // every line above works on single elements, so buckets change nothing
    momentumSync,

    init: (θ) => ({ elements: { m: zerosLike(θ) } }),

    async step(θ, g, { elements: { m } }, exchange, { step, lr: η, gradientScale }) {
      const u = lionVote(m, g, { beta1, beta2, zero: signAt(zero, step), gradientScale }); // the first two lines

      using v = await exchange.majority(u, { tie: signAt(tie, step) });

      applyVote(θ, v, { keep: 1 - η * weightDecay, scale: -η });
    },

    messages: ({ n }) => [{ kind: "vote", n, outcome: "plus" }],
  };
}

/**
 * With p bits. Each layer has its scale; buckets are cut between layers, so they change nothing here either. `levels` are those of each of
 * P ranks: l1's `bits` and `side`.
 */
function withLevels(
  levels: (ranks: number) => { readonly bits: number; readonly side: number },
  {
    beta1,
    beta2,
    weightDecay,
    momentumSync,
  }: Pick<v.InferOutput<typeof lionCubOptions>, "beta1" | "beta2" | "weightDecay" | "momentumSync">,
): Algorithm<LionCubState> {
  const Q1 = ({ ranks }: Vector, segments?: readonly number[]) =>
    l1({ ...levels(ranks), unscaled: true, ...(segments && { segments }) });
  const byVector = new WeakMap<Vector, ReturnType<typeof Q1>>(); // made once, because the exchange caches what it derives from a codec

  return {
    name: "lion-cub",
    splits: "anywhere",
    momentumSync,

    init(θ, { segments, ranks }) {
      const single = levels(ranks).side === 1 ? segments.find(({ length }) => length === 1) : undefined;
      if (single)
        throw new RangeError(
          `lion-cub.bits: with one level on each side of 0 the parameter ${single.name} of one element would never move: it is half a level, which is rounded to 0; take bits: 1, or 3 and more, or another algorithm for it (groups)`,
        );
      return { elements: { m: zerosLike(θ) } };
    },

    async step(θ, g, { elements: { m } }, exchange, { lr: η, gradientScale, vector }) {
      using c = lionMix(m, g, { beta1, beta2, gradientScale });
      const codec = byVector.get(vector) ?? Q1(vector, vector.lengths); // one scale a layer
      byVector.set(vector, codec);

      using v = await exchange.signOfLevels(c, { codec });

      applyVote(θ, v, { keep: 1 - η * weightDecay, scale: -η });
    },

    messages: (vector) => [{ kind: "signOfLevels", n: vector.n, codec: Q1(vector) }],
  };
}

/** As many levels as p bits hold. */
const levelsOfBits = (bits: number) => () => ({ bits, side: 2 ** (bits - 1) - 1 });

/** As many levels as leave the sum of all ranks in so many bits, with its sign: s = ⌊127/P⌋ for 8 bits. */
const levelsOfSum = (sumBits: number) => (ranks: number) => {
  const most = 2 ** (sumBits - 1) - 1;
  const side = Math.floor(most / ranks);
  if (side === 0)
    throw new RangeError(
      `lion-cub.sumBits: ${sumBits} bits hold a sum from ${-most} to ${most}, less than one level of each of ${ranks} ranks; take more bits, or bits: 1`,
    );
  return { bits: Math.ceil(Math.log2(2 * side + 1)), side };
};
