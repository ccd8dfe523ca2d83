import type { Group } from "@terse/collectives";
import { checkSkipped, type Dataset } from "@terse/data";
import { amountText } from "./format.ts";
import { gatherJson } from "./gather-json.ts";

const areTexts = (value: unknown) => Array.isArray(value) && value.every((each) => typeof each === "string");

/**
 * The samples that any rank could not read so far, and why: the same list on all ranks, which meet the same samples in
 * other epochs. Throws `DataError` on all of them where these are more than allowed, because one rank sees only a part.
 */
export async function skippedSamples(data: Dataset, group: Group): Promise<string[]> {
  if (data.mostSkipped === undefined) return [];
  const ofRanks = await gatherJson<readonly string[]>(group, data.skipped ?? [], areTexts);
  const skipped = [...new Set(ofRanks.flat())].sort();
  checkSkipped(data, skipped);
  return skipped;
}

const named = 3;

/** "5 images could not be decoded: cat/1.jpg (it is empty), …", or nothing. */
export function skippedText(skipped: readonly string[], { unit }: Dataset): string | undefined {
  if (skipped.length === 0) return undefined;
  const names = `${skipped.slice(0, named).join(", ")}${skipped.length > named ? ", …" : ""}`;
  return `${amountText(skipped.length, unit)} could not be decoded: ${names}`;
}
