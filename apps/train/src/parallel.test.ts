import { type Group, loopback } from "@terse/collectives";
import { OptionsError } from "@terse/options";
import { Arena } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { buildModel, buildOptimizer } from "./build.ts";
import { readRecipe } from "./recipe.ts";

const ofOthers = "optimizer.groups=[{ roles: [embedding, head, norm, vector], name: adamw }]";
const dion = ["optimizer.name=dion", "optimizer.clip=0", ofOthers];

/** The elements of Dion's state that each rank holds, or the error that all of them throw. */
async function stateOf(ranks: number, ...overrides: string[]): Promise<number[]> {
  const small = ["model.preset=nano", "model.width=32", "model.layers=1"];
  const recipe = readRecipe("gpt-small", [...small, ...overrides]);
  const groups = loopback(ranks);
  const stateElements = async (group: Group) => {
    await using optimizer = await buildOptimizer(recipe, new Arena(buildModel(recipe)), group);
    const { tensors } = await optimizer.state();
    return [...tensors].reduce((sum, [name, { length }]) => sum + (/^[MQ]\./.test(name) ? length : 0), 0);
  };
  try {
    return await Promise.all(groups.map(stateElements));
  } finally {
    for (const group of groups) await group.close();
  }
}

describe("parallel", () => {
  it("has all ranks on the data axis; with a weight they share the state of matrices", async () => {
    const whole = await stateOf(4, ...dion);
    for (const [weight, ...given] of [
      [2, "parallel.weight=2"],
      [2, "parallel.weight=2", "parallel.data=2"],
      [4, "parallel.weight=4"],
    ] as const)
      expect(await stateOf(4, ...dion, ...given)).toEqual(whole.map((elements) => elements / weight));
  });

  it.each([
    [["parallel.weight=3"], "parallel: 1 data-parallel × 3 weight-parallel ranks are 3, and there are 4"],
    [["parallel.data=4", "parallel.weight=2"], "parallel: 4 data-parallel × 2 weight-parallel ranks are 8"],
    [["parallel.data=7", "local.syncEvery=5"], "parallel: 7 data-parallel × 1 weight-parallel ranks are 7"],
    [["parallel.weight=2", "optimizer.name=lion"], "parallel.weight is 2, and adamw and lion cannot be sharded"],
    [["parallel.weight=0"], "parallel.weight: expected an integer ≥ 1"],
  ])("is refused in one line, %s", async (given, message) => {
    const refused = stateOf(4, ...dion, ...given);
    await expect(refused).rejects.toThrow(OptionsError);
    await expect(refused).rejects.toThrow(message);
  });
});
