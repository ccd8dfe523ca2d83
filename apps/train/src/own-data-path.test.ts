import { loopback } from "@terse/collectives";
import { OptionsError } from "@terse/options";
import { afterEach, expect, it, vi } from "vitest";
import { withOwnDataPath } from "./own-data-path.ts";
import { readRecipe } from "./recipe.ts";
import { checkSameRecipe } from "./same-recipe.ts";

afterEach(() => vi.unstubAllEnvs());

const recipe = readRecipe("gpt-small", ["data.path=/a/text"]);

it("TERSE_DATA_PATH is where this machine has the data", () => {
  expect(withOwnDataPath(recipe)).toBe(recipe);
  vi.stubEnv("TERSE_DATA_PATH", "/b/text");
  expect(withOwnDataPath(recipe)).toEqual({ ...recipe, data: { ...recipe.data, path: "/b/text" } });
  expect(recipe.data).toMatchObject({ path: "/a/text" });
  vi.stubEnv("TERSE_DATA_PATH", "");
  expect(withOwnDataPath(recipe)).toBe(recipe);
});

it("stands for no path that a recipe does not have", () => {
  vi.stubEnv("TERSE_DATA_PATH", "/b/text");
  expect(() => withOwnDataPath(readRecipe("gpt-small", []))).toThrow(OptionsError);
});

it("is named where ranks were asked for different paths", async () => {
  const groups = loopback(2);
  const other = readRecipe("gpt-small", ["data.path=/b/text"]);
  const outcomes = await Promise.allSettled([checkSameRecipe(recipe, groups[0]!), checkSameRecipe(other, groups[1]!)]);
  for (const outcome of outcomes)
    expect((outcome as PromiseRejectedResult).reason.message).toBe(
      'data.path: rank 1 has "/b/text", and rank 0 has "/a/text"\n' +
        "Where a machine has the data at another path, give every machine the same data.path, and on that machine set the environment variable TERSE_DATA_PATH to its own.\n" +
        "Start all ranks with the same recipe and the same command line.",
    );
  for (const group of groups) await group.close();
});
