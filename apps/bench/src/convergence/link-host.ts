/** One rank on a link of its own: takes steps of a recipe, ours or with PyTorch's DistributedDataParallel. */
import { mkdtempDisposableSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
import { joinWorld, loopback } from "@terse/collectives";
import { datasets } from "@terse/data";
import { gptPresets, type Model } from "@terse/models";
import { setNumThreads } from "@terse/tensor";
import { buildModel } from "@terse/train/build";
import { type Recipe, readRecipe } from "@terse/train/recipe";
import { learningRate } from "@terse/train/schedule";
import { bytesOnLink, serve } from "../hosts/serve.ts";
import { Peer } from "../peer.ts";
import { rowsOfBytes } from "../rows-of-bytes.ts";
import type { Hook } from "./methods.ts";
import { type Trained, trainRank, windows } from "./training.ts";

interface Asked {
  readonly recipe: string; // address of its file
  readonly overrides: readonly string[];
  readonly take: number; // steps
  readonly every: number; // steps between evaluations; 0: none
}

/**
 * Steps that a rank takes by itself before those that are timed. Node compiles meanwhile: of a run's first 40 steps one
 * takes up to a third longer than later.
 */
const alone = 40;

setNumThreads(1);
const world = await joinWorld();

await serve({
  async ours({ recipe, overrides, take, every }: Asked): Promise<Trained> {
    const read = readRecipe(recipe, overrides);
    if (every === 0) await trainRank(read, loopback(1)[0]!, { take: alone });
    const group = (await world.split(0))!;
    try {
      return await trainRank(read, group, { take, every });
    } finally {
      await group.close();
    }
  },

  /** Trains in PyTorch from the same weights, with the same batches, learning rates and options of the optimizer. */
  async pytorch({ recipe, overrides, take, every, hook }: Asked & { hook: Hook }): Promise<Trained> {
    const read = readRecipe(recipe, overrides);
    using folder = mkdtempDisposableSync(join(tmpdir(), "terse-bench-"));
    await using peer = await Peer.start("ddp_curves.py", [
      JSON.stringify(await taskOf(read, { take, hook, folder: folder.path })),
    ]);
    const points: { step: number; loss: number }[] = [];
    const steps: { bytes: number; milliseconds: number }[] = [];
    const evaluated = async () => {
      if (every > 0)
        points.push({
          step: steps.length,
          loss: (await peer.ask<{ loss: number | null }>("evaluate")).loss ?? Number.NaN,
        });
    };
    await evaluated();
    while (steps.length < take) {
      const count = every > 0 ? Math.min(every, take - steps.length) : 1;
      const before = bytesOnLink();
      const { milliseconds } = await peer.ask<{ milliseconds: number[] }>(`train ${count}`);
      const sent = before === undefined ? Number.NaN : (bytesOnLink()! - before) / count;
      for (const one of milliseconds) steps.push({ bytes: sent, milliseconds: one });
      await evaluated();
    }
    return { points, steps };
  },

  async close() {
    await world.close();
  },
});

async function taskOf(recipe: Recipe, { take, hook, folder }: { take: number; hook: Hook; folder: string }) {
  const model = buildModel(recipe);
  await saveModel(folder, model.namedParameters(), {});
  const { name: dataset, batchSize, ...dataOptions } = recipe.data;
  const share = { batchSize, seed: recipe.seed, rank: world.rank, ranks: world.size, length: model.context };
  await using data = await datasets[dataset].open(dataOptions, share);
  const training: Buffer[] = [];
  for (let step = 0; step < take; step++) training.push(await rowsOfBytes(await data.next()));
  writeFileSync(`${folder}/training`, Buffer.concat(training));
  writeFileSync(`${folder}/held-out`, await rowsOfBytes(data.validation({ windows, sharded: false })));
  const { name: _, preset, ...given } = recipe.model as { name: string; preset: keyof typeof gptPresets };
  const { clip } = recipe.optimizer;
  const optimizers = optimizersOf(recipe, model.namedParameters(), take);
  return { shape: { ...gptPresets[preset], ...given }, batchSize, folder, clip, optimizers, hook };
}

/** An optimizer for the parameters of each group, by roles, and one for all others, with its rate of each step. */
function optimizersOf(
  { optimizer, schedule, steps }: Recipe,
  parameters: ReturnType<Model["namedParameters"]>,
  take: number,
) {
  const { groups, ...own } = optimizer;
  const sections = [...groups, own].map((section) => ({ lr: own.lr, ...section, parameters: [] as string[] }));
  for (const [name, { role }] of parameters) {
    const place = groups.findIndex(({ roles }) => roles?.includes(role));
    sections.at(place)!.parameters.push(name);
  }
  return sections.map(({ lr, ...section }) => ({
    ...section,
    rates: Array.from({ length: take }, (_, step) => learningRate(step, { ...schedule, steps, lr })),
  }));
}
