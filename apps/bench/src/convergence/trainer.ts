/** A process of `Trainers`: trains a recipe with several workers in one process, each with one thread. */
import { loopback } from "@terse/collectives";
import { setNumThreads } from "@terse/tensor";
import { readRecipe } from "@terse/train/recipe";
import { serve } from "../hosts/serve.ts";
import { trainRank } from "./training.ts";

setNumThreads(1);

export interface Run {
  readonly recipe: string; // its file, or the name of one in apps/train/recipes
  readonly overrides: readonly string[];
  readonly workers: number;
  readonly every: number; // steps between evaluations
  readonly probeAt?: readonly number[] | undefined; // steps taken
}

await serve({
  async train({ recipe, overrides, workers, every, probeAt }: Run) {
    const groups = loopback(workers);
    try {
      const read = readRecipe(recipe, overrides);
      const [first] = await Promise.all(groups.map((group) => trainRank(read, group, { every, probeAt })));
      return first;
    } finally {
      await Promise.all(groups.map((group) => group.close()));
    }
  },
});
