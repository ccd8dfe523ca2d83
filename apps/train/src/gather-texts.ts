import type { Group } from "@terse/collectives";

const mostBytes = 1 << 24; // of a rank's text

/** The text of each rank. Throws an error that names the rank whose text has an impossible length. */
export async function gatherTexts(group: Group, text: string): Promise<string[]> {
  const mine = new TextEncoder().encode(text);
  const lengths = await gatherLengths(group, mine.length);
  const texts = lengths.map((length, rank) => (rank === group.rank ? mine : new Uint8Array(length)));
  await group.allGather(texts);
  return texts.map((bytes) => new TextDecoder().decode(bytes));
}

/**
 * How many bytes each rank's text has, `most` of them. Throws an error that names the rank whose text has an impossible
 * length, before memory is allocated for it.
 */
export async function gatherLengths(group: Group, mine: number, most = mostBytes): Promise<number[]> {
  const lengths = Array.from({ length: group.size }, () => Float64Array.of(mine));
  await group.allGather(lengths);
  return lengths.map(([length], rank) => {
    if (Number.isInteger(length) && length! >= 0 && length! <= most) return length!;
    throw new Error(
      `rank ${rank} announced a text of ${length} bytes, and the most is ${most}; check that it runs the same version of terse`,
    );
  });
}
