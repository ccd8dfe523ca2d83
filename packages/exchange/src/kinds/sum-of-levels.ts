/** The exact sum of the ranks' levels, by owners: levels.ts. */
import { type Codec, count, type Floats, f16, SumTooWideError } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import type { OwnerScheme } from "../by-owners/by-owners.ts";
import { checkLength, checkOptions } from "../by-owners/owned-chunks.ts";
import type { CodecMessage } from "./codec-message.ts";
import { type Kind, nothing } from "./kind.ts";
import { addLevels, levelSumsCost } from "./level-sums.ts";
import { levelSums, levelsOf, type SumOfLevelsOptions, sendsSigns } from "./levels.ts";
import { viaOwners } from "./via-owners.ts";

/** The largest sum that is handed out: up to there f16 has all whole numbers. */
export const largestSumOfLevels = 2048;

export interface SumByOwnersOptions extends Omit<SumOfLevelsOptions, "into"> {
  /** Σ q, times `scale`, is added to these n floats; it replaces x unless they are given. */
  readonly into?: Floats | undefined;
  /** The value of a level of l1, the same on every rank; each rank's own scale gives it unless given. */
  readonly unit?: number | undefined;
}

/**
 * into += scale · Σ q, or x ← it. RangeError if the sum exceeds the fields on the way down: 8 bits, or f16's whole
 * numbers up to 2048.
 */
export const sumOfLevels: Kind<Floats, SumByOwnersOptions, OwnerScheme, void, CodecMessage<"sumOfLevels">> = {
  ...viaOwners,
  memory: "replaced",
  ofCodec: ["into"],
  name: "sumOfLevels",
  ask: (x, options, { group }) => scheme(group, x, options),
  result: nothing,
  cost: (messages, ranks, rank) =>
    messages.map(({ n, codec }) => levelSumsCost(levelSums(codec, n, ranks, wholeNumbers(codec, ranks)), rank)),
};

function scheme(group: Group, x: Floats, options: SumByOwnersOptions): OwnerScheme {
  const { codec, into, scale = 1, unit } = options;
  if (into) checkLength("sumOfLevels", "into", into, x.length, "as x has");
  checkOptions("levels", codec, x.length, options);
  const down = wholeNumbers(codec, group.size);
  const sums = levelSums(codec, x.length, group.size, down);
  return {
    ...addLevels(group, x, options, sums, unit === undefined ? undefined : Float32Array.of(unit)),
    handOut: (results) => sums.chunks.read(results, x, into, () => [down, { scale }]),
  };
}

/** The narrowest codec that writes every whole number from −P s to P s. */
function wholeNumbers(codec: Codec, ranks: number): Codec {
  const { bits, s } = sendsSigns(codec) ? { bits: 2, s: 1 } : levelsOf(codec);
  const most = ranks * s;
  for (let wide = bits; wide <= 8; wide++) if (most <= 2 ** (wide - 1) - 1) return count({ bits: wide, ranks: 1 });
  if (most <= largestSumOfLevels) return f16;
  throw new SumTooWideError(
    "sumOfLevels",
    `${ranks} ranks of ${bits} bits sum up to ±${most}, and f16 holds whole numbers up to ${largestSumOfLevels}: take fewer bits, or the direct sum.`,
  );
}
