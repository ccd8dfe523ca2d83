/**
 * The sum over the ranks of quantised levels, as whole numbers: Lion Cub's p-bit exchange. Ishikawa et al. 2024,
 * Algorithm 1, line 5, §4.2 and §6, https://arxiv.org/abs/2411.16462
 *
 *   q_r = Q₁(x_r)        −s … s, s ≤ 2^(p − 1) − 1     l1 or linf, unscaled: each rank has its own scale, so all have
 *                                                      equal weight
 *     or sign(x_r)       −1, 0 or 1, p = 2             ternary; not direct
 *   Σ q_r                exactly; Lion Cub's update is its sign, and 0 leaves the parameter unchanged
 *
 * Three ways use the same Σ q:
 *
 *   direct   the paper's: one summing all-reduce of fields of w bits with room for the sum, P (2^p − 1) ≤ 2^w − 1
 *   owners   p bits up; each chunk's owner adds; the sums come down in the narrowest fields with room for P s, w′ bits
 *   sign     p bits up; only the sign of the sum comes down, as two bit planes
 *
 * Sent by a rank, about:
 *
 *            bits an element, times (P − 1)/P   8 ranks, 5 bits   messages
 *   direct   2 w                                16                1 (P − 1 if small)
 *   owners   p + w′                             13                2 (P − 1)
 *   sign     p + 2                              7                 2 (P − 1)
 *
 * The direct sum has no headers for refusals: they follow the fields, one element for each rank.
 */
import { type Codec, type Floats, type Summable, ternary, type Zeros } from "@terse/codecs";
import { type EncodeOptions, ownedChunks } from "../by-owners/owned-chunks.ts";
import { perCodec } from "../per-codec.ts";
import { type LevelSums, sizesOfSums } from "./level-sums.ts";

export interface LevelsOptions extends EncodeOptions {
  /** l1 or linf with `unscaled`, whose `ranks` and `width` the exchange sets; or ternary. */
  readonly codec: Codec;
}

export interface SumOfLevelsOptions extends LevelsOptions {
  /** Σ q, times `scale`, is added to these n floats. */
  readonly into: Floats;
  readonly scale?: number | undefined;
}

/** By owners: the levels of each rank go up, and the owners write Σ q with the codec `down`. */
export function levelSums(codec: Codec, n: number, ranks: number, down: Codec): LevelSums {
  const chunks = ownedChunks(sendsSigns(codec) ? codec : summable(codec, 1), n, ranks);
  return {
    chunks,
    downSizes: sizesOfSums(chunks, () => down),
    // `count` requires a sign of zero, but uses it only for fields of one bit.
    writeSums: (wire, Σq) => (down as Codec<Zeros>).encode(wire, Σq, { zero: "plus" }),
  };
}

/** The codec with fields for the sum of this many ranks. */
export const summable: (codec: Codec, ranks: number) => Codec = perCodec(
  (codec, ranks: number) => levelsOf(codec).codec(ranks) as Codec,
);

/** RangeError for a codec whose levels cannot be added. */
export function levelsOf({ name, parameters, summable }: Codec): Pick<Summable, "bits" | "s" | "codec"> {
  if (parameters.unscaled && summable) return summable;
  throw new RangeError(
    `levels: ${name} ${JSON.stringify(parameters)} cannot be summed as whole numbers; take l1 or linf with unscaled, or \`sum\`.`,
  );
}

/** Whether the levels are −1, 0 and 1 as two planes of bits, which cannot be summed where they lie. */
export const sendsSigns = ({ name }: Codec): boolean => name === ternary.name;
