import { isObject } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { OptionsError } from "@terse/options";
import { agreed } from "./end-others.ts";
import { gatherJson } from "./gather-json.ts";
import { ownDataPathRemedy } from "./own-data-path.ts";
import { leavesOf, type Tree } from "./recipe-tree.ts";

/** Throws on every rank, and names the keys and the ranks where a rank was asked for something else than rank 0. */
export async function checkSameRecipe(recipe: object, group: Group): Promise<void> {
  const recipes = await gatherJson<object>(group, recipe, isObject);
  const [expected, ...others] = recipes.map(
    (each) => new Map(leavesOf(each as Tree).map(([key, value]) => [key, JSON.stringify(value)])),
  );
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
