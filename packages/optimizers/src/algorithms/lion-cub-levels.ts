/**
 * Lion Cub whose ranks vote with levels of p bits, 2 to 8. Ishikawa et al. 2024, §4.2 and §6,
 * https://arxiv.org/abs/2411.16462; needs no synchronisation of momenta (§5.2)
 *
 *   c ← β₁ m + (1 − β₁) g            m ← β₂ m + (1 − β₂) g
 *   q ← Q₁(c)                        whole numbers −s … s, s = 2^(p − 1) − 1, which is twice the layer's mean |c|.
 *                                    With sumBits: 8, s = ⌊127/P⌋, as in the authors' code
 *   v ← sign(Σ_ranks q)              p bits up, two planes of bits down; 0 does not move
 *   θ ← θ − η (v + λ θ)
 *
 * `sum: direct` is the paper's own all-reduce of fields.
 *
 * `quantizer` takes what Figure 5 compares with Q₁: Q∞, whose levels reach to the largest |c| of the layer and are
 * drawn at random; linf-without-zero, which makes ±1 of a level 0; linf-logarithmic, whose levels are powers of two.
 * The last are values, not whole numbers: they are added in f32, and the sum comes down in the same p bits.
 *
 * One bit has no 0. With `zero: hold` q = sign(c) is −1, 0 or 1, in two bits: what Figure 3 compares one bit with.
 *
 * With s = 1 a layer whose |c| are all equal has q = 0 and does not move: |c| is half a level, and a half is rounded to
 * the even level. A layer of one element is always such a layer, and refused.
 *
 * Shapes: θ, g, m, c (n)   q: n levels of p bits   v: two planes of n bits
 * Sent per step: 1 message; in bytes, besides the scales:
 *                        (P − 1)/P · (p + 2) n/8
 *   sum: direct          2 (P − 1)/P · w n/8, w the fields' width: 4, 8 or 16
 *   logarithmic levels   2 (P − 1)/P · p n/8
 */
import { type Codec, l1, linf, ternary } from "@terse/codecs";
import { OptionsError } from "@terse/options";
import { type Tensor, zerosLike } from "@terse/tensor";
import type { Rules, Vector } from "./algorithm.ts";
import { drawsOf } from "./draws.ts";
import { applySign, applyVote, lionMix } from "./kernels.ts";
import type { LionCubOptions } from "./lion-cub-options.ts";
import { perVector } from "./per-vector.ts";
import type { State } from "./state.ts";

interface LevelsState extends State {
  readonly elements: {
    m: Tensor; // this rank's own
  };
}

/**
 * Each layer has its scale; buckets are cut between layers, so they change nothing. One exception: the owner of a chunk
 * writes a sum of logarithmic levels anew, with a scale and draws of its own, and buckets change the chunks.
 */
export function lionCubLevels(
  {
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
  }: LionCubOptions & { bits: number },
  where: string,
): Rules<LevelsState> {
  const levels = sumBits === undefined ? levelsOfBits(bits) : levelsOfSum(sumBits, where);
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
  const codecOf = perVector((vector) => Q(vector, vector.lengths)); // one scale a layer
  const kind = quantizer === "linf-logarithmic" ? "sum" : sum === "direct" ? "sumOfLevelsDirect" : "signOfLevels";

  return {
    splits: "anywhere",
    votes: { beta1, beta2 },
    momentumSync,

    init(θ, { segments, ranks }) {
      const single =
        quantizer === "l1" && levels(ranks).side === 1 ? segments.find(({ length }) => length === 1) : undefined;
      if (single)
        throw new OptionsError([
          {
            path: `${where}.${sumBits === undefined ? "bits" : "sumBits"}`,
            problem: `with one level on each side of 0 the parameter ${single.name} of one element would never move: it is half a level, which is rounded to 0`,
            remedy: `${sumBits === undefined ? "take bits: 1, or 3 and more" : moreLevels(2, ranks)}, or another algorithm for it (groups)`,
          },
        ]);
      return { elements: { m: zerosLike(θ) } };
    },

    async step(θ, g, { elements: { m } }, exchange, context) {
      const { lr: η, gradientScale, vector } = context;
      using c = lionMix(m, g, { beta1, beta2, gradientScale });
      const how = { codec: codecOf(vector), ...drawsOf(seed, context) };
      const change = { keep: 1 - η * weightDecay, scale: -η };

      if (kind === "signOfLevels") {
        using v = await exchange.signOfLevels(c, how);
        await exchange.agreed();
        applyVote(θ, v, change);
        return;
      }
      using Σq = zerosLike(θ);
      await exchange[kind](c, { ...how, into: Σq });
      await exchange.agreed();
      applySign(θ, Σq, change);
    },

    messages: (vector) => [{ kind, n: vector.n, codec: kind === "sum" ? codecOf(vector) : Q(vector) }],
  };
}

/** As many levels as p bits hold. */
const levelsOfBits = (bits: number) => () => ({ bits, side: 2 ** (bits - 1) - 1 });

/**
 * The largest sum that fits in so many bits, with its sign, and the levels that it leaves to each rank: s = ⌊127/P⌋ for
 * 8 bits.
 */
const largestSum = (sumBits: number) => 2 ** (sumBits - 1) - 1;
export const sideOfSum = (sumBits: number, ranks: number) => Math.floor(largestSum(sumBits) / ranks);

const mostSumBits = 8;

/** What leaves at least so many levels on each side of 0. */
function moreLevels(side: number, ranks: number): string {
  for (let sumBits = 2; sumBits <= mostSumBits; sumBits++)
    if (sideOfSum(sumBits, ranks) >= side) return `take sumBits: ${sumBits} or more, or leave it out`;
  return `leave it out, since more than ${mostSumBits} bits are not possible`;
}

/** As many levels as keep the sum of all ranks in so many bits. */
const levelsOfSum = (sumBits: number, where: string) => (ranks: number) => {
  const side = sideOfSum(sumBits, ranks);
  const most = largestSum(sumBits);
  if (side === 0)
    throw new OptionsError([
      {
        path: `${where}.sumBits`,
        problem: `${sumBits} bits hold a sum from ${-most} to ${most}, less than one level of each of ${ranks} ranks`,
        remedy: moreLevels(1, ranks),
      },
    ]);
  return { bits: Math.ceil(Math.log2(2 * side + 1)), side };
};
