import type { Group } from "@terse/collectives";

const mostBytes = 1 << 28; // of a rank's text

/** The text of each rank. Throws an error that names the rank whose text has an impossible length. */
export async function gatherTexts(group: Group, text: string): Promise<string[]> {
  const mine = new TextEncoder().encode(text);
  const lengths = Array.from({ length: group.size }, () => Float64Array.of(mine.length));
  await group.allGather(lengths);
  for (const [rank, [length]] of lengths.entries())
    if (!Number.isInteger(length) || length! < 0 || length! > mostBytes)
      throw new Error(
        `rank ${rank} announced a text of ${length} bytes, and the most is ${mostBytes}; check that it runs the same version of terse`,
      );
  const texts = lengths.map(([length], rank) => (rank === group.rank ? mine : new Uint8Array(length!)));
  await group.allGather(texts);
  return texts.map((bytes) => new TextDecoder().decode(bytes));
}
