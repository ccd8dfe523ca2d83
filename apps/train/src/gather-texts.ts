import type { Group } from "@terse/collectives";

/** The text of each rank. */
export async function gatherTexts(group: Group, text: string): Promise<string[]> {
  const mine = new TextEncoder().encode(text);
  const lengths = Array.from({ length: group.size }, () => Float64Array.of(mine.length));
  await group.allGather(lengths);
  const texts = lengths.map(([length], rank) => (rank === group.rank ? mine : new Uint8Array(length!)));
  await group.allGather(texts);
  return texts.map((bytes) => new TextDecoder().decode(bytes));
}
