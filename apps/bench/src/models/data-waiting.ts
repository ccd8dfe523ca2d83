/** The share of a training step that is waiting for its batch, for each kind of data, as `./terse train` reads it. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loopback } from "@terse/collectives";
import { availableProcessors } from "@terse/native-loader";
import { Arena, setNumThreads } from "@terse/tensor";
import { buildData, buildModel, buildOptimizer } from "@terse/train/build";
import { forwardIn } from "@terse/train/precision";
import { readRecipe } from "@terse/train/recipe";
import { takeStep } from "@terse/train/take-step";
import sharp from "sharp";
import { type Measurement, median } from "../measurement.ts";

const [warmUp, steps] = [3, 20];

interface Read {
  readonly name: string;
  readonly recipe: string; // of apps/train/recipes
  readonly overrides: readonly string[];
}

const repository = new URL("../../../../", import.meta.url);

/** The kinds of data. Each is read by a recipe, which is otherwise as it is. */
const kinds = (pictures: string): readonly Read[] => [
  { name: "text, bytes, small GPT", recipe: "gpt-small", overrides: [] },
  { name: "CIFAR with crop, flip, AutoAugment and cutout, narrow ResNet-18", recipe: "resnet18-cifar", overrides: [] },
  {
    name: "a folder of JPEG of 500 × 375, scaled to 224, ResNet-18",
    recipe: "resnet18-cifar",
    overrides: [
      "model={name: resnet, preset: resnet18, classes: 2}",
      `data={name: image-folder, path: ${pictures}, classes: 2, size: 224, resize: true, flip: true, batchSize: 4}`,
    ],
  },
  {
    name: "masked text, bytes, BERT-Tiny",
    recipe: "bert-tiny-one-bit-lamb",
    overrides: [`data.path=${fileURLToPath(new URL("docs/algorithms.md", repository))}`],
  },
];

export async function* dataWaiting(): AsyncGenerator<Measurement> {
  const pictures = await makePictures();
  try {
    for (const kind of kinds(pictures))
      for (const threads of new Set([1, availableProcessors()])) yield* waitingOf(kind, threads);
  } finally {
    rmSync(pictures, { recursive: true, force: true });
  }
}

async function* waitingOf({ name, recipe: file, overrides }: Read, threads: number): AsyncGenerator<Measurement> {
  setNumThreads(threads);
  const recipe = readRecipe(new URL(`apps/train/recipes/${file}.yaml`, repository), overrides);
  const [group] = loopback(1);
  const model = buildModel(recipe);
  const arena = new Arena(model);
  await using read = await buildData(recipe, model, group!);
  await using optimizer = await buildOptimizer(recipe, arena, group!);
  let waited = 0;
  const next = async (count?: number) => {
    const began = performance.now();
    const batches = await read.next(count);
    waited += performance.now() - began;
    return batches;
  };
  const training = { model, arena, data: { next }, optimizer, forward: forwardIn(recipe), accumulate: 1 };
  const [waits, times]: [number[], number[]] = [[], []];
  for (let step = -warmUp; step < steps; step++) {
    waited = 0;
    const began = performance.now();
    await takeStep(training, recipe.optimizer.lr);
    if (step < 0) continue;
    times.push(performance.now() - began);
    waits.push(waited);
  }
  await group!.close();
  model.dispose();
  const sum = (of: readonly number[]) => of.reduce((all, one) => all + one, 0);
  const inCase = { case: `${name}, ${threads} ${threads === 1 ? "thread" : "threads"}` };
  yield { ...inCase, metric: "step_ms", value: median(times), unit: "ms" };
  yield { ...inCase, metric: "waiting_ms", value: sum(waits) / steps, unit: "ms" };
  yield { ...inCase, metric: "data_fraction", value: sum(waits) / sum(times), unit: "fraction" };
}

/**
 * A folder with 8 pictures of each of two classes: gradients with noise, which take as long to decode as photographs.
 */
async function makePictures(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "terse-bench-"));
  const [width, height] = [500, 375];
  const pixels = new Uint8Array(width * height * 3);
  for (const [label, name] of ["one", "two"].entries()) {
    mkdirSync(join(folder, name));
    for (let i = 0; i < 8; i++) {
      for (let at = 0; at < pixels.length; at++)
        pixels[at] = (at >> (4 + label)) + 16 * i + (Math.imul(at, 40503) & 31);
      const picture = sharp(pixels, { raw: { width, height, channels: 3 } });
      await picture.jpeg({ quality: 90 }).toFile(join(folder, name, `${i}.jpg`));
    }
  }
  return folder;
}
