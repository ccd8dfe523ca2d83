/** One rank's training run, from recipe to checkpoint. In the loop only `optimizer.step` and the journal talk to other ranks. */
import type { Group } from "@terse/collectives";
import { Arena, scope } from "@terse/tensor";
import type { TrainArguments } from "./arguments.ts";
import { buildData, buildModel, buildOptimizer } from "./build.ts";
import { evaluate } from "./evaluate.ts";
import { Journal } from "./journal.ts";
import type { Recipe } from "./recipe.ts";
import { openRun } from "./run.ts";
import { sameText } from "./same-text.ts";
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

  await optimizer.compare(); // the same seed and build on every rank …
  await sameText(data, group); // … and the same text

  for (let step = run.step; step < recipe.steps; step++) {
    if (step === run.step || every(recipe.evaluate.every, step)) await journal.evaluated(step, validate);

    await scope(async () => {
      // every tensor born here and not kept is freed at the end
      const stop = journal.start(step);
      arena.zeroGradients();
      const lr = learningRate(step, schedule);
      let loss = 0;
      for (const [part, { tokens, next }] of (await data.next(recipe.accumulate)).entries())
        await scope(async () => {
          // one micro-batch's activations at a time
          const share = model.loss(tokens, next).div(recipe.accumulate);
          loss += share.item();
          // From here on, gradients that the last backward has completed leave while it works on the others.
          if (part + 1 === recipe.accumulate) await optimizer.begin({ lr, loss });
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
