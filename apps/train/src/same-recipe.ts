import type { Group } from "@terse/collectives";
import { OptionsError } from "@terse/options";
import { agreed } from "./end-others.ts";
import { gatherJson, isRecord } from "./gather-json.ts";
import { ownDataPathRemedy } from "./own-data-path.ts";

/** Throws on every rank, and names the keys and the ranks where a rank was asked for something else than rank 0. */
export async function checkSameRecipe(recipe: object, group: Group): Promise<void> {
  const recipes = await gatherJson<object>(group, recipe, isRecord);
  const [expected, ...others] = recipes.map((each) => new Map(leaves(each, [])));
  const keys = new Set([expected!, ...others].flatMap((values) => [...values.keys()]));
  const problems = [...keys].flatMap((key) => {
    const ranks = new Map<string, number[]>(); // by the value that they have, where it is not rank 0's
    for (const [i, values] of others.entries()) {
      const value = values.get(key) ?? "no value";
      if (value !== (expected!.get(key) ?? "no value")) ranks.set(value, [...(ranks.get(value) ?? []), i + 1]);
    }
    return [...ranks].map(
      ([value, which]) =>
        `${key}: rank ${which.join(", ")} ${which.length > 1 ? "have" : "has"} ${value}, and rank 0 has ${expected!.get(key) ?? "no value"}`,
    );
  });
  const paths = problems.some((problem) => problem.startsWith("data.path:")) ? [ownDataPathRemedy] : [];
  if (problems.length > 0)
    throw agreed(
      new OptionsError([...problems, ...paths, "Start all ranks with the same recipe and the same command line."]),
    );
}

/** Every value of a tree, as JSON, with its dotted key. */
function leaves(value: unknown, path: readonly string[]): [key: string, json: string][] {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
  return [[path.join("."), JSON.stringify(value)]];
}
