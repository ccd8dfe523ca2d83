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
 * `bits: auto` chooses by P, since the paper has no rule but that the sum must fit into a byte (§5.2 and §6): sumBits: 8 up to 63 ranks, where
 * at least two levels are left on each side of 0, and one bit for more. `sum: direct` is the paper's own all-reduce of fields.
 *
 * `quantizer` takes what Figure 5 compares with Q₁: Q∞, whose levels reach to the largest |c| of the layer and are drawn at random; linf-without-zero,
 * which makes ±1 of a level 0; linf-logarithmic, whose levels are powers of two. The last are values, not whole numbers: they are added in f32,
 * and the sum comes down in the same p bits.
 *
 * One bit has no 0. With `zero: hold` u is −1, 0 or 1, in two bits, v = sign(Σ_ranks u), and 0 does not move: what Figure 3 compares one bit with.
 *
 * With s = 1 a layer whose |c| are all equal has q = 0 and does not move: |c| is half a level, and a half is rounded to the even level. A
 * layer of one element is always such a layer, and refused.
 *
 * Shapes: θ, g, m (n)   u, v: n bits
 * Sent per step: 1 message, 2 (P − 1)/P · n/8 bytes; 32-bit data parallel sends 32 times that.
 * With `zero: hold` twice as many, with p bits (p + 2)/2 as many, with `sum: direct` as many as the fields' width, 4, 8 or 16, with logarithmic
 * levels p and the scales; c is held meanwhile, 4 n bytes.
 * With momentumSync, after every k-th step: m ← mean_ranks(m) of some layers, 4 bytes an element and way (momentum-sync.ts).
 */
import { type Codec, l1, linf, signAt, ternary } from "@terse/codecs";
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
import { type KeptOptions, keptAboveZero } from "../kept-options.ts";
import { momentumSyncOptions } from "../momentum-sync.ts";
import type { Algorithm, Vector } from "./algorithm.ts";
import { drawsOf, seed } from "./draws.ts";
import { applySign, applyVote, lionMix, lionVote } from "./kernels.ts";
import { applyMasked, forgetBits, maskEvery, maskMessages, updateMask } from "./seen-mask.ts";
import type { State } from "./state.ts";

export const lionCubOptions = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁: weight of the momentum in the vote
  beta2: v.optional(unitIntervalFloat, 0.99), // β₂: weight of the momentum in itself
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  bits: v.optional(v.union([v.pipe(positiveInteger, v.maxValue(8)), oneOf(["auto"])]), 1), // p: bits of a rank's vote
  sumBits: v.optional(v.pipe(v.number(), v.integer(), v.minValue(2), v.maxValue(8))), // in place of bits: as many levels as leave the sum in these bits, s = ⌊127/P⌋ for 8
  quantizer: v.optional(oneOf(["l1", "linf", "linf-without-zero", "linf-logarithmic"])), // only with more than one bit; l1 if absent
  sum: v.optional(oneOf(["owners", "direct"])), // only with more than one bit: who adds the levels; owners if absent
  seed, // of the draws of linf
  zero: v.optional(oneOf(["hold", "plus", "minus", "alternate"])), // only with one bit: the vote of an exact 0; alternate if absent; hold: 0, in two bits
  tie: v.optional(oneOf(["plus", "minus", "alternate"])), // only of signs: the outcome of as many votes each way; alternate if absent
  maskEvery, // only of signs: steps between two counts of the elements that have had a gradient, the others do not move; 0: none (seen-mask.ts)
  momentumSync: v.optional(momentumSyncOptions, {}), // which layers' m is averaged, and when (§5.1); none
});

export const lionCubKept: KeptOptions<v.InferOutput<typeof lionCubOptions>> = keptAboveZero("maskEvery");

export interface LionCubState extends State {
  readonly elements: {
    m: Tensor; // this rank's own; ranks drift apart unless it is synchronised
    seen?: Tensor; // with a mask: 1 for elements that have had a gradient on some rank, else 0
  };
}

export function lionCub(options: v.InferInput<typeof lionCubOptions> = {}): Algorithm<LionCubState> {
  const given = parseOptions(lionCubOptions, options, "lion-cub");
  const { beta1, beta2, weightDecay, bits, zero = "alternate", tie = "alternate", maskEvery, momentumSync } = given;
  checkTogether(given);
  if (bits === "auto") return chosenByRanks(given);
  if (bits > 1 || given.sumBits !== undefined || zero === "hold") return withLevels({ ...given, bits });
  return {
    name: "lion-cub",
    splits: "anywhere", // every line above works on single elements, so buckets change nothing
    momentumSync,

    init: (θ) => ({ elements: { m: zerosLike(θ), ...(maskEvery > 0 && { seen: zerosLike(θ) }) } }),

    async step(θ, g, { elements: { m, seen } }, exchange, { step, lr: η, gradientScale }) {
      const u = lionVote(m, g, { beta1, beta2, zero: signAt(zero, step), gradientScale }); // the first two lines

      using v = await exchange.majority(u, { tie: signAt(tie, step) });

      const change = { keep: 1 - η * weightDecay, scale: -η };
      if (!seen) return applyVote(θ, v, change);
      await updateMask(seen, m, exchange, maskEvery, step);
      applyMasked(θ, v, seen, change);
    },

    messages: ({ n }, step) => [{ kind: "vote", n, outcome: "plus" }, ...maskMessages(maskEvery, n, step)],

    restored: (_, { elements: { seen } }) => seen && forgetBits(seen),
  };
}

type Given = v.InferOutput<typeof lionCubOptions>;

/** Throws where an option would have no effect. */
function checkTogether(given: Given): void {
  const { bits, sumBits, quantizer = "l1", sum } = given;
  const problems: string[] = [];
  const say = (option: keyof Given, why: string) => problems.push(`lion-cub.${option}: ${why}`);
  if (bits !== 1 && sumBits !== undefined)
    say("sumBits", `it chooses the bits, and bits is ${bits}; leave one of them out`);
  const hasLevels = bits !== 1 || sumBits !== undefined;
  const how = sumBits === undefined ? `bits: ${bits}` : `sumBits: ${sumBits}`;
  for (const option of hasLevels ? (["zero", "tie"] as const) : [])
    if (given[option] !== undefined)
      say(
        option,
        `with ${how} levels can be 0, which does not move, and ${option} is ${given[option]}; leave ${option} out, or take one bit`,
      );
  for (const option of hasLevels ? [] : (["quantizer", "sum"] as const))
    if (given[option] !== undefined)
      say(
        option,
        `one bit is a vote, which has no levels, and ${option} is ${given[option]}; take more bits, or leave ${option} out`,
      );
  if (given.seed > 0 && !(hasLevels && quantizer.startsWith("linf")))
    say("seed", `only linf draws at random, and seed is ${given.seed}; leave it out, or take quantizer: linf`);
  if (hasLevels && given.maskEvery > 0)
    say("maskEvery", `with ${how} a level can be 0, which does not move; leave maskEvery out, or take one bit`);
  const holds = !hasLevels && given.zero === "hold";
  if (holds && given.tie !== undefined)
    say(
      "tie",
      `with zero: hold a sum of 0 does not move, and tie is ${given.tie}; leave tie out, or take another zero`,
    );
  if (holds && given.maskEvery > 0)
    say(
      "maskEvery",
      "with zero: hold elements without a gradient do not move; leave maskEvery out, or take another zero",
    );
  if (quantizer !== "l1" && (bits === "auto" || sumBits !== undefined))
    say("quantizer", `${how} chooses the levels of l1, and quantizer is ${quantizer}; give bits as a number`);
  if (quantizer === "linf-logarithmic" && sum === "direct")
    say(
      "sum",
      "logarithmic levels are no whole numbers, whose fields could be added; leave sum out, or take another quantizer",
    );
  if (problems.length > 0) throw new OptionsError(problems);
}

/** `bits: auto` */
function chosenByRanks({ quantizer, sum, ...given }: Given): Algorithm<LionCubState> {
  const levels = withLevels({ ...given, quantizer, sum, bits: 1, sumBits: 8 });
  const votes = lionCub({ ...given, bits: 1 });
  const of = (ranks: number) => (sideOfSum(8, ranks) > 1 ? levels : votes);
  return {
    ...votes,
    init: (θ, vector) => of(vector.ranks).init(θ, vector),
    step: (θ, g, state, exchange, context) => of(context.vector.ranks).step(θ, g, state, exchange, context),
    messages: (vector, step, state) => of(vector.ranks).messages(vector, step, state),
  };
}

/** With p bits, or with signs and exact zeros. Each layer has its scale; buckets are cut between layers, so they change nothing here either. */
function withLevels({
  beta1,
  beta2,
  weightDecay,
  momentumSync,
  bits,
  sumBits,
  quantizer = "l1",
  sum = "owners",
  zero,
  seed,
}: Given & { bits: number }): Algorithm<LionCubState> {
  const levels = sumBits === undefined ? levelsOfBits(bits) : levelsOfSum(sumBits);
  const Q = ({ ranks }: Vector, segments?: readonly number[]): Codec => {
    if (zero === "hold") return ternary as Codec; // its encoder takes the signs
    const scales = segments ? { segments } : {};
    if (quantizer === "l1") return l1({ ...levels(ranks), unscaled: true, ...scales }) as Codec;
    if (quantizer === "linf-logarithmic") return linf({ bits, levels: "logarithmic", ...scales }) as Codec;
    return linf({
      bits,
      levels: quantizer === "linf" ? "uniform" : "without-zero",
      unscaled: true,
      ...scales,
    }) as Codec;
  };
  const byVector = new WeakMap<Vector, Codec>(); // made once, because the exchange caches what it derives from a codec
  const codecOf = (vector: Vector) => {
    const codec = byVector.get(vector) ?? Q(vector, vector.lengths); // one scale a layer
    byVector.set(vector, codec);
    return codec;
  };
  const kind = quantizer === "linf-logarithmic" ? "sum" : sum === "direct" ? "sumOfLevelsDirect" : "signOfLevels";

  return {
    name: "lion-cub",
    splits: "anywhere",
    momentumSync,

    init(θ, { segments, ranks }) {
      const single =
        quantizer === "l1" && levels(ranks).side === 1 ? segments.find(({ length }) => length === 1) : undefined;
      if (single)
        throw new RangeError(
          `lion-cub.bits: with one level on each side of 0 the parameter ${single.name} of one element would never move: it is half a level, which is rounded to 0; take bits: 1, or 3 and more, or another algorithm for it (groups)`,
        );
      return { elements: { m: zerosLike(θ) } };
    },

    async step(θ, g, { elements: { m } }, exchange, context) {
      const { lr: η, gradientScale, vector } = context;
      using c = lionMix(m, g, { beta1, beta2, gradientScale });
      const how = { codec: codecOf(vector), ...drawsOf(seed, context) };
      const change = { keep: 1 - η * weightDecay, scale: -η };

      if (kind === "signOfLevels") {
        using v = await exchange.signOfLevels(c, how);
        applyVote(θ, v, change);
        return;
      }
      using Σq = zerosLike(θ);
      await exchange[kind](c, { ...how, into: Σq });
      applySign(θ, Σq, change);
    },

    messages: (vector) => [{ kind, n: vector.n, codec: kind === "sum" ? codecOf(vector) : Q(vector) }],
  };
}

/** As many levels as p bits hold. */
const levelsOfBits = (bits: number) => () => ({ bits, side: 2 ** (bits - 1) - 1 });

/** The largest sum that so many bits hold, with its sign, and what it leaves to each rank: s = ⌊127/P⌋ for 8 bits. */
const largestSum = (sumBits: number) => 2 ** (sumBits - 1) - 1;
const sideOfSum = (sumBits: number, ranks: number) => Math.floor(largestSum(sumBits) / ranks);

/** As many levels as leave the sum of all ranks in so many bits. */
const levelsOfSum = (sumBits: number) => (ranks: number) => {
  const side = sideOfSum(sumBits, ranks);
  const most = largestSum(sumBits);
  if (side === 0)
    throw new RangeError(
      `lion-cub.sumBits: ${sumBits} bits hold a sum from ${-most} to ${most}, less than one level of each of ${ranks} ranks; take more bits, or bits: 1`,
    );
  return { bits: Math.ceil(Math.log2(2 * side + 1)), side };
};
