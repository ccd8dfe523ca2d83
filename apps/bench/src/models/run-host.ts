/** One of the processes that train a task: a rank with one thread. */
import { joinWorld } from "@terse/collectives";
import { setNumThreads } from "@terse/tensor";
import { readRecipe } from "@terse/train/recipe";
import { trainRank } from "../convergence/training.ts";
import { serve } from "../hosts/serve.ts";

export interface Asked {
  readonly recipe: string; // address of its file
  readonly overrides: readonly string[];
}

setNumThreads(1);
const world = await joinWorld();

await serve({
  async train({ recipe, overrides }: Asked) {
    const read = readRecipe(new URL(recipe), overrides);
    const group = (await world.split(0))!;
    try {
      return await trainRank(read, group, { every: Math.ceil(read.steps / 5), rows: read.evaluate.windows });
    } finally {
      await group.close();
    }
  },
  async close() {
    await world.close();
  },
});
