/**
 * What sums of levels and of fields share. Levels of p bits go up. Each chunk's owner adds them as whole numbers, which
 * are exact in fp32 in any order, and its sums come down.
 */
import type { Codec, Floats } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { byOwnersCost, type OwnerScheme } from "../by-owners/by-owners.ts";
import { type EncodeOptions, type OwnedChunks, sliceOf } from "../by-owners/owned-chunks.ts";
import type { Cost } from "../cost.ts";
import { scratchOf } from "../scratch.ts";

export interface LevelSums {
  /** Levels on the way up. */
  readonly chunks: OwnedChunks;
  /** Bytes of each owner's sums. */
  readonly downSizes: readonly number[];
  /** The initial value of every sum; 0 unless given. */
  readonly sumsStartAt?: number;
  /** Writes a chunk's sums. */
  writeSums(wire: Uint8Array, Σq: Float32Array): void;
}

/** Bytes of each owner's sums, where owner r writes them with `codecOf(r)`. */
export const sizesOfSums = (chunks: OwnedChunks, codecOf: (r: number) => Codec): number[] =>
  chunks.sizes.map((_, r) => (chunks.lengthOf(r) === 0 ? 0 : codecOf(r).wireBytes(chunks.lengthOf(r))));

/** All phases except the last. `units` are those of the levels, where the ranks have agreed on some. */
export function addLevels(
  group: Group,
  x: Floats,
  options: EncodeOptions,
  { chunks, downSizes, sumsStartAt = 0, writeSums }: LevelSums,
  units?: Float32Array,
): Omit<OwnerScheme, "handOut"> {
  const { rank } = group;
  const mine = chunks.lengthOf(rank);
  return {
    up: chunks.sizes,
    down: downSizes,
    encode: (outgoing) =>
      chunks.write(outgoing, scratchOf(group), (codec, wire, begin, end) => {
        const call: object = chunks.call(options, rank, begin, end);
        codec.encode(wire, sliceOf(x, begin, end), units ? { ...call, units } : call);
      }),
    reduce(incoming, result) {
      if (mine === 0) return;
      using loan = scratchOf(group).loan(4 * mine);
      const Σq = loan.floats.fill(sumsStartAt);
      chunks.add(rank, incoming, Σq, {}, 1);
      writeSums(result, Σq);
    },
  };
}

export const levelSumsCost = ({ chunks, downSizes }: LevelSums, rank: number): Cost =>
  byOwnersCost(chunks.sizes, downSizes, rank, { encoding: chunks.wholeBytes, reducing: 4 * chunks.lengthOf(rank) });
