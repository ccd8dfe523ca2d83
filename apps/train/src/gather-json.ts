import { parsedJson } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { gatherTexts } from "./gather-texts.ts";

/** The value of each rank. Throws an error that names the rank whose value is no JSON, or is not `isRight`. */
export async function gatherJson<T>(group: Group, mine: T, isRight: (value: unknown) => boolean): Promise<T[]> {
  const texts = await gatherTexts(group, JSON.stringify(mine));
  return texts.map((text, rank) => {
    const value = parsedJson(text);
    if (!isRight(value))
      throw new Error(`rank ${rank} sent what no rank sends here; check that it runs the same version of terse`);
    return value as T;
  });
}
