/** Weights from a file beside reading that file from the page cache, and steps beside a save that is being written. */
import { mkdtempDisposableSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModel, saveModel } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { Gpt2, gpt2Presets } from "@terse/models";
import { Arena } from "@terse/tensor";
import { buildData, buildModel, buildOptimizer } from "@terse/train/build";
import { forwardIn } from "@terse/train/precision";
import { readRecipe } from "@terse/train/recipe";
import { openRun } from "@terse/train/run";
import { takeStep } from "@terse/train/take-step";
import { inTurns, medianRatio } from "../in-turns.ts";
import { type Measurement, median } from "../measurement.ts";

const savingRounds = 11;
const stepsBetween = 20;

/** The sides take turns. Both end with all bytes in memory that was there before; loading also looks at every value. */
export async function* loading(): AsyncGenerator<Measurement> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "terse-bench-"));
  const model = new Gpt2(gpt2Presets.gpt2);
  try {
    await saveModel(folder.path, model.stateDict(), {});
    await using file: FileHandle = await open(join(folder.path, "model.safetensors"), "r");
    const bytes = (await file.stat()).size;
    const memory = new Uint8Array(bytes).fill(1);
    const milliseconds = async (work: () => Promise<unknown>) => {
      const began = performance.now();
      await work();
      return performance.now() - began;
    };
    const { read, load } = await inTurns({
      read: () =>
        milliseconds(async () => {
          for (let at = 0; at < bytes; ) at += (await file.read(memory, at, bytes - at, at)).bytesRead;
        }),
      load: () => milliseconds(() => loadModel(folder.path, model.stateDict())),
    });
    const inCase = { case: `gpt2, ${Math.round(bytes / 1e6)} MB of safetensors` };
    const rate = (times: readonly number[]) => bytes / 1e6 / median(times);
    yield { ...inCase, metric: "read", value: rate(read), unit: "GB/s" };
    yield { ...inCase, metric: "load", value: rate(load), unit: "GB/s" };
    yield { ...inCase, metric: "over_read", value: medianRatio(read, load), unit: "ratio" };
  } finally {
    model.dispose();
  }
}

/** Steps with the copy of the state and while it is written, and steps without a save, in turns. */
export async function* stepWhileSaving(): AsyncGenerator<Measurement> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "terse-bench-"));
  const recipe = readRecipe(new URL("../../../train/recipes/gpt-small.yaml", import.meta.url), []);
  const [group] = loopback(1);
  const model = buildModel(recipe);
  const arena = new Arena(model);
  await using data = await buildData(recipe, model, group!);
  await using optimizer = await buildOptimizer(recipe, arena, group!);
  try {
    const args = { out: folder.path, recipe: undefined, resume: undefined, initFrom: undefined, overrides: [] };
    await using run = await openRun(recipe, group!, args);
    await run.begin({ model, data, optimizer });
    const training = { model, arena, data, optimizer, forward: forwardIn(recipe), accumulate: 1 };
    const failed = ({ why }: { why: string }) => {
      throw new Error(why);
    };
    // The copy, and steps until it is written: however long that takes, all that it costs is in their time.
    const whileSaving = async (save: number) => {
      const began = performance.now();
      await run.beginSave(save, failed);
      let steps = 0;
      for (; run.isSaving || steps < 4; steps++) await takeStep(training, recipe.optimizer.lr);
      return { steps, milliseconds: performance.now() - began };
    };
    const alone = async () => {
      const began = performance.now();
      for (let i = 0; i < stepsBetween; i++) await takeStep(training, recipe.optimizer.lr);
      return (performance.now() - began) / stepsBetween;
    };
    // Beside the steps before and after it, because the speed of a machine drifts.
    const sides: { steps: number; saving: number; without: number }[] = [];
    let before = await alone();
    for (let round = -1; round < savingRounds; round++) {
      const { steps, milliseconds } = await whileSaving(round + 2);
      const after = await alone();
      // The first is warm-up
      if (round >= 0) sides.push({ steps, saving: milliseconds / steps, without: (before + after) / 2 });
      before = after;
    }
    const inCase = { case: "gpt small, steps until a save is written" };
    const middle = (of: (side: (typeof sides)[number]) => number) => median(sides.map(of));
    yield { ...inCase, metric: "steps", value: middle(({ steps }) => steps), unit: "steps" };
    yield { ...inCase, metric: "step_ms", value: middle(({ without }) => without), unit: "ms" };
    yield { ...inCase, metric: "saving_step_ms", value: middle(({ saving }) => saving), unit: "ms" };
    yield {
      ...inCase,
      metric: "save_costs_ms",
      value: middle(({ steps, saving, without }) => steps * (saving - without)),
      unit: "ms",
    };
    const over = middle(({ saving, without }) => saving / without);
    yield { ...inCase, metric: "step_while_saving", value: over, unit: "ratio" };
  } finally {
    await group!.close();
    model.dispose();
  }
}
