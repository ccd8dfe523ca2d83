/** Weights from a file beside reading that file from the page cache, and steps beside a save that is being written. */
import { mkdtempSync, rmSync } from "node:fs";
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
import { type Measurement, median } from "../measurement.ts";

const rounds = 7;

/** The sides take turns. Both end with all bytes in memory that was there before; loading also looks at every value. */
export async function* loading(): AsyncGenerator<Measurement> {
  const folder = mkdtempSync(join(tmpdir(), "terse-bench-"));
  const model = new Gpt2(gpt2Presets.gpt2);
  try {
    await saveModel(folder, model.stateDict(), {});
    await using file: FileHandle = await open(join(folder, "model.safetensors"), "r");
    const bytes = (await file.stat()).size;
    const memory = new Uint8Array(bytes).fill(1);
    const [read, load]: [number[], number[]] = [[], []];
    for (let round = -1; round < rounds; round++) {
      const began = performance.now();
      for (let at = 0; at < bytes; ) at += (await file.read(memory, at, bytes - at, at)).bytesRead;
      const between = performance.now();
      await loadModel(folder, model.stateDict());
      const ended = performance.now();
      if (round < 0) continue; // warm-up
      read.push(between - began);
      load.push(ended - between);
    }
    const inCase = { case: `gpt2, ${Math.round(bytes / 1e6)} MB of safetensors` };
    const rate = (times: readonly number[]) => bytes / 1e6 / median(times);
    yield { ...inCase, metric: "read", value: rate(read), unit: "GB/s" };
    yield { ...inCase, metric: "load", value: rate(load), unit: "GB/s" };
    yield { ...inCase, metric: "over_read", value: median(read.map((time, i) => time / load[i]!)), unit: "ratio" };
  } finally {
    model.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Steps with the copy of the state and while it is written, beside as many steps without a save, in turns. */
export async function* stepWhileSaving(): AsyncGenerator<Measurement> {
  const folder = mkdtempSync(join(tmpdir(), "terse-bench-"));
  const recipe = readRecipe(new URL("../../../train/recipes/gpt-small.yaml", import.meta.url), []);
  const [group] = loopback(1);
  const model = buildModel(recipe);
  const arena = new Arena(model);
  await using data = await buildData(recipe, model, group!);
  await using optimizer = await buildOptimizer(recipe, arena, group!);
  try {
    const args = { out: folder, recipe: undefined, resume: undefined, initFrom: undefined, overrides: [] };
    await using run = await openRun(recipe, group!, args);
    await run.begin({ model, data, optimizer });
    const training = { model, arena, data, optimizer, forward: forwardIn(recipe), accumulate: 1 };
    const stepsTogether = 4;
    const steps = async (before?: () => Promise<void>) => {
      const began = performance.now();
      await before?.();
      for (let i = 0; i < stepsTogether; i++) await takeStep(training, recipe.optimizer.lr);
      return (performance.now() - began) / stepsTogether;
    };
    const failed = ({ why }: { why: string }) => {
      throw new Error(why);
    };
    const [without, beside]: [number[], number[]] = [[], []];
    for (let round = -1; round < rounds; round++) {
      const alone = await steps();
      const saving = await steps(() => run.beginSave(round + 2, failed));
      await run.save(round + 2); // until it is written
      if (round < 0) continue; // warm-up
      without.push(alone);
      beside.push(saving);
    }
    const inCase = { case: `gpt small, a save in every ${stepsTogether} steps` };
    yield { ...inCase, metric: "step_ms", value: median(without), unit: "ms" };
    yield { ...inCase, metric: "saving_step_ms", value: median(beside), unit: "ms" };
    const over = median(beside.map((time, i) => time / without[i]!));
    yield { ...inCase, metric: "step_while_saving", value: over, unit: "ratio" };
  } finally {
    await group!.close();
    model.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
