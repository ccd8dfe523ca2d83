/** One rank's training run, from recipe to checkpoint. Everything that talks to other ranks goes through the optimizer. */
import type { Group } from "@terse/collectives";
import { Arena, scope } from "@terse/tensor";
import type { Arguments } from "./arguments.ts";
import { buildData, buildModel, buildOptimizer } from "./build.ts";
import { evaluate } from "./evaluate.ts";
import { Journal } from "./journal.ts";
import type { Recipe } from "./recipe.ts";
import { openRun } from "./run.ts";
import { learningRate } from "./schedule.ts";

export async function train(
  recipe: Recipe,
  group: Group,
  args: Pick<Arguments, "recipe" | "out" | "resume">,
): Promise<void> {
  const model = buildModel(recipe);
  const arena = new Arena(model);
  const data = await buildData(recipe, model, group);
  const optimizer = buildOptimizer(recipe, arena, group);
  const run = await openRun(recipe, group, { model, data, optimizer }, args);
  await using journal = new Journal(recipe, group, { model, data, optimizer, run });

  for (let step = run.step; step < recipe.steps; step++) {
    if (evaluates(step, recipe)) journal.evaluated(step, await evaluate(model, data, recipe, group));

    await scope(async () => {
      // every tensor born here and not kept is freed at the end
      const stop = journal.start(step);
      arena.zeroGradients();
      let loss = 0;
      for (const { tokens, next } of await data.next(recipe.accumulate)) {
        const share = model.loss(tokens, next).div(recipe.accumulate);
        await share.backward();
        loss += share.item();
      }
      const lr = learningRate(step, recipe);
      const report = await optimizer.step({ lr, loss }); // all ranks take the step, or none does
      await stop({ loss, lr, ...report });
    });

    if (recipe.save.every > 0 && (step + 1) % recipe.save.every === 0) await run.save(step + 1);
  }

  await optimizer.compare();
  journal.evaluated(recipe.steps, await evaluate(model, data, recipe, group));
  await run.save(recipe.steps);
  await journal.finish();
}

function evaluates(step: number, { evaluate: { every } }: Recipe): boolean {
  return step === 0 || (every > 0 && step % every === 0);
}
