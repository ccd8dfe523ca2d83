import { loopback } from "@terse/collectives";
import { expect, it } from "vitest";
import { checkSameRecipe } from "./same-recipe.ts";

async function check(...recipes: object[]): Promise<string[]> {
  const groups = loopback(recipes.length);
  const outcomes = await Promise.allSettled(groups.map((group, rank) => checkSameRecipe(recipes[rank]!, group)));
  await Promise.all(groups.map((group) => group.close()));
  return outcomes.map((outcome) => (outcome.status === "rejected" ? (outcome.reason as Error).message : "the same"));
}

it("accepts the same recipe on every rank", async () => {
  const recipe = { steps: 3, optimizer: { name: "lion", betas: [0.9, 0.99] } };
  expect(await check(recipe, structuredClone(recipe))).toEqual(["the same", "the same"]);
});

it("tells every rank which keys differ, and on which ranks", async () => {
  const messages = await check(
    { steps: 3, optimizer: { lr: 1, name: "lion" } },
    { steps: 3, optimizer: { lr: 2, name: "lion" } },
    { steps: 3, optimizer: { lr: 2, name: "lion", zero: "plus" } },
  );
  const message = [
    "optimizer.lr: rank 1, 2 have 2, and rank 0 has 1",
    'optimizer.zero: rank 2 has "plus", and rank 0 has no value',
    "Start all ranks with the same recipe and the same command line.",
  ].join("\n");
  expect(messages).toEqual([message, message, message]);
});
