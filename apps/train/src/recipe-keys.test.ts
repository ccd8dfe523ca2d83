import { readFileSync } from "node:fs";
import { models } from "@terse/models";
import { parseYaml } from "@terse/options";
import { expect, it } from "vitest";
import { usage } from "./arguments.ts";
import { sentences } from "./commands/config.ts";
import { defaultRecipe, readRecipe } from "./recipe.ts";
import { recipeSchema } from "./recipe-schema.ts";
import { recipeKeysPages, recipeKeysText } from "./testing/recipe-keys.ts";

const recipe = parseYaml(readFileSync(defaultRecipe, "utf8"), "default recipe") as Record<string, unknown>;

it("is what the help shows: recipe-keys.txt (made anew by ./terse test recipe-keys -u)", async () => {
  await expect(recipeKeysText(recipeSchema, recipe)).toMatchFileSnapshot("recipe-keys.txt");
});

const pages = recipeKeysPages(recipeSchema, sentences);

it.each([...pages.keys()])("is the page docs/%s (made anew by ./terse test recipe-keys -u)", async (file) => {
  await expect(pages.get(file)).toMatchFileSnapshot(`../../../docs/${file}`);
});

it("says of a section which choices its own name has, and not those of a key inside", () => {
  const index = pages.get("recipe-keys.md");
  expect(index).toContain(`(recipe-keys/model.md) | of ${Object.keys(models).join(", ")} |`);
  expect(index).toContain("(recipe-keys/local.md) | syncEvery, ");
});

it("asks for the sentence of a key that has none, with the file to write it in", () => {
  const others = new Map([...sentences].filter(([key]) => key !== "logEvery"));
  expect(() => recipeKeysPages(recipeSchema, others)).toThrow(/^logEvery has no sentence: .*key-sentences\.txt/);
});

it("fits in 80 columns, and shows types, defaults, and what the default recipe sets", () => {
  const text = recipeKeysText(recipeSchema, recipe);
  for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  expect(text).toMatch(/^ {2}--optimizer\.lr +a number > 0 \(0\.002\*\)$/m);
  expect(text).toMatch(/^ {2}--accumulate +an integer ≥ 1 and ≤ 1000000 \(1\*\)$/m);
  expect(text).toMatch(
    /^ {2}with --optimizer\.name=adamw:\n( {4}--.*\n| {10}.*\n)*? {4}--optimizer\.eps +a number > 0 \(1e-8\)$/m,
  );
});

it("goes with a help that names the default recipe's model and method", () => {
  const { model, optimizer, exchange } = readRecipe(defaultRecipe, []);
  const [, said] = /by default a small (.+?), two processes/.exec(usage.replaceAll(/\s+/g, " "))!;
  expect(said!.toLowerCase()).toBe(`${model.name}, ${optimizer.name} with ${exchange.gradient!.name}`);
});
