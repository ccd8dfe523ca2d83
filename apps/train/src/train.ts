/** One rank's training run, from recipe to checkpoint. In the loop only the optimizer and the journal send messages. */
import type { Group } from "@terse/collectives";
import { Arena, scope } from "@terse/tensor";
import type { TrainArguments } from "./arguments.ts";
import { buildData, buildModel, buildOptimizer } from "./build.ts";
import { evaluate } from "./evaluate.ts";
import { Journal } from "./journal.ts";
import type { Recipe } from "./recipe.ts";
import { openRun } from "./run.ts";
import { checkSameData } from "./same-data.ts";
import { learningRate } from "./schedule.ts";

export async function train(
  recipe: Recipe,
  group: Group,
  args: Pick<TrainArguments, "recipe" | "out" | "resume">,
): Promise<void> {
  const model = buildModel(recipe);
  const arena = new Arena(model);
  const data = await buildData(recipe, model, group);
  await using optimizer = await buildOptimizer(recipe, arena, group);
  const run = await openRun(recipe, group, { model, data, optimizer }, args);
  await using journal = new Journal(recipe, group, { model, data, optimizer, run });

  const schedule = { ...recipe.schedule, steps: recipe.steps, lr: recipe.optimizer.lr };
  const validate = () => evaluate(model, data, recipe.evaluate.windows, group);

  await optimizer.compare(); // every rank begins with the same parameters …
  await checkSameData(data, group); // … and reads the same data

  for (let step = run.step; step < recipe.steps; step++) {
    if (step === run.step || every(recipe.evaluate.every, step)) await journal.evaluated(step, validate);

    await scope(async () => {
      // the scope's end frees every tensor that was made in it and not kept
      const stop = journal.start(step);
      arena.zeroGradients();
      const lr = learningRate(step, schedule);
      let loss = 0;
      for (const batch of await data.next(recipe.accumulate))
        await scope(async () => {
          // one micro-batch's activations at a time
          const share = model.loss(batch).div(recipe.accumulate);
          loss += share.item();
          if (batch.last) await optimizer.begin({ lr, loss }); // each bucket leaves as soon as backward completes it
          await share.backward();
        });
      const report = await optimizer.step({ lr, loss }); // all ranks take the step, or none does
      await stop({ loss, lr, ...report });
    });

    if (every(recipe.save.every, step + 1) && step + 1 < recipe.steps) await journal.aside(() => run.save(step + 1));
  }

  await optimizer.compare();
  await journal.evaluated(recipe.steps, validate);
  await run.save(recipe.steps);
  await journal.finish();
}

function every(steps: number, step: number): boolean {
  return steps > 0 && step % steps === 0;
}
