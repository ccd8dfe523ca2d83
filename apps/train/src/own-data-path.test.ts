import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loopback } from "@terse/collectives";
import { OptionsError } from "@terse/options";
import { afterEach, expect, it, vi } from "vitest";
import { buildModel } from "./build.ts";
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

it("has the classes of which a model of pictures is made, also where a run's advice makes it again", () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-own-data-"));
  for (const name of ["ant", "bee", "cow"]) mkdirSync(join(folder, name));
  const pictures = ["data.name=image-folder", "data.path=/a/pictures", "data.size=32", "model.width=4"];
  const elsewhere = readRecipe("resnet18-cifar", pictures);
  expect(() => buildModel(elsewhere)).toThrow("Cannot read the folder /a/pictures: it does not exist");
  vi.stubEnv("TERSE_DATA_PATH", folder);
  const three = buildModel(elsewhere).parameterCount();
  expect(three).toBe(buildModel(readRecipe("resnet18-cifar", [...pictures, "data.classes=3"])).parameterCount());
  rmSync(folder, { recursive: true });
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
