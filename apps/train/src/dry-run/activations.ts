/**
 * The memory of a micro-batch's forward and backward. It is measured; where that would take long with a few layers and
 * short rows: the memory after each allocation grows evenly with the rows, and by their length and its square.
 */
import { type DataFacts, datasets } from "@terse/data";
import { models } from "@terse/models";
import { OptionsError } from "@terse/options";
import {
  Arena,
  memoryDuring,
  noGrad,
  numThreads,
  ones,
  scope,
  setNumThreads,
  type Tensor,
  TensorError,
  withDevice,
  zeros,
} from "@terse/tensor";
import { buildModel } from "../build.ts";
import { withOwnDataPath } from "../own-data-path.ts";
import { forwardIn } from "../precision.ts";
import type { Recipe } from "../recipe.ts";

/** A larger model is not made for a measurement: with its gradients it would take more than 1 GB. */
const mostParameters = 125e6;
/** Parameters times tokens of a batch that is measured as it is, in less than a second. */
const mostWork = 3e9;

/** The size of a micro-batch; rows of pictures have no length. */
interface BatchShape {
  readonly rows: number;
  readonly length: number;
}

/**
 * The most bytes of a rank's activations and of what backward makes beside the gradients, on the CPU. Resolves to
 * undefined where it cannot be measured: a few layers are too large already, the adapter names layers by number, or an
 * operator takes its memory in more parts for longer rows (attention in bf16).
 */
export async function activationsOf(recipe: Recipe): Promise<number | undefined> {
  const layers = layersOf(recipe);
  try {
    if (layers === undefined || layers <= more) return rounded(await bytesOf(recipe));
    const [a, b] = [await bytesOf(withLayers(recipe, few)), await bytesOf(withLayers(recipe, more))];
    return a && b && rounded(b + ((layers - more) / (more - few)) * (b - a));
  } catch (error) {
    if (error instanceof OptionsError || error instanceof TensorError) return undefined; // TensorError: no memory for it
    throw error;
  }
}

const [few, more] = [2, 3]; // layers

const rounded = (bytes: number | undefined) => (bytes === undefined ? undefined : Number(bytes.toPrecision(3)));

/** Undefined for models that are not a row of equal layers. */
function layersOf({ model }: Recipe): number | undefined {
  const { name, preset, layers } = model as { name: keyof typeof models; preset: string; layers?: number };
  return layers ?? (models[name].presets[preset] as { layers?: number }).layers;
}

function withLayers(recipe: Recipe, layers: number): Recipe {
  const model: Recipe["model"] & { layers: number } = { ...recipe.model, layers };
  return { ...recipe, model };
}

async function bytesOf(recipe: Recipe): Promise<number | undefined> {
  const count = scope(() => {
    const shapes = withDevice("meta", () => buildModel(recipe));
    return shapes.parameters().reduce((sum, { length }) => sum + length, 0);
  });
  if (count > mostParameters) return undefined;
  const threads = numThreads();
  try {
    setNumThreads(1); // in one order
    return await scope(() => mostOf(recipe, count));
  } finally {
    setNumThreads(threads);
  }
}

async function mostOf(recipe: Recipe, parameters: number): Promise<number | undefined> {
  const { name, batchSize: rows, ...options } = withOwnDataPath(recipe).data;
  const facts = datasets[name].facts(options);
  const model = buildModel(recipe);
  const arena = new Arena(model);
  const measured = (rows: number, length: number) =>
    memoryDuring(() =>
      scope(async () => {
        arena.replaceGradients();
        await forwardIn(recipe)(() => model.loss(exampleBatch(recipe, facts, { rows, length }))).backward();
      }),
    );
  const length = facts.length ?? model.context ?? 1;
  if (model.context !== undefined && parameters * rows * length <= mostWork)
    return most(await measured(rows, length), (bytes) => bytes);
  const t = shortest;
  if (length <= 3 * t) {
    // Two rows and more: normalisation over a batch of one is not defined.
    const [a, b] = [await measured(2, length), await measured(3, length)];
    const isFitted = a.length === b.length;
    const [two, three] = isFitted ? [a, b] : [a, b].map((counted) => [most(counted, (bytes) => bytes)]);
    return most(two!, (bytes, i) => bytes + (rows - 2) * (three![i]! - bytes));
  }
  const three = [await measured(1, t), await measured(1, 2 * t), await measured(1, 3 * t)] as const;
  const skipsOne = three[0].length !== three[1].length && 4 * t <= length;
  const [a, b, c] = skipsOne ? ([three[1], three[2], await measured(1, 4 * t)] as const) : three;
  const from = skipsOne ? 2 * t : t; // the length of a
  if (a.length !== b.length || b.length !== c.length) return undefined;
  return most(a, (first, i) => {
    const square = (c[i]! - 2 * b[i]! + first) / (2 * t * t);
    const linear = (b[i]! - first) / t - (2 * from + t) * square;
    const constant = first - from * linear - from * from * square;
    return constant + rows * length * (linear + length * square);
  });
}

const most = (counted: readonly number[], bytesAt: (counted: number, i: number) => number) =>
  counted.map(bytesAt).reduce((a, b) => Math.max(a, b), 0);

const shortest = 64; // tokens: fewer may take other operators than many; on some processors 64 do, and are left out

/** Tensors in the shapes and types of the recipe's data. What is in them is of no use. */
export function exampleBatch(
  { data, model }: Recipe,
  { channels, height, width }: DataFacts,
  { rows, length }: BatchShape,
): Readonly<Record<string, Tensor>> {
  const { maskFraction, packing = "none" } = data as { maskFraction?: number; packing?: string };
  const ofRows = () => zeros([rows], { dtype: "i64" });
  const ofTokens = () => zeros([rows, length], { dtype: "i64" });
  const make: Readonly<Record<string, () => Tensor>> = {
    tokens: ofTokens,
    next: ofTokens,
    segments: ofTokens,
    positions: ofTokens,
    mask: () => ones([rows, length], { dtype: "i64" }),
    images: () => zeros([rows, channels!, height!, width!]),
    labels: () => (maskFraction === undefined ? ofRows() : maskedLabels([rows, length], maskFraction)),
    nextSentence: ofRows,
  };
  const fields = [...models[model.name].fields, ...(packing === "none" ? [] : ["positions"])];
  return Object.fromEntries(fields.map((field) => [field, make[field]!()]));
}

/** The first tokens of each row are to be predicted, and the others, −100, are not. */
function maskedLabels([rows, length]: [number, number], fraction: number): Tensor {
  return noGrad(() => {
    const labels = zeros([rows, length], { dtype: "i64" });
    const predicted = Math.round(fraction * length);
    labels.narrow(1, predicted, length - predicted).fill_(-100);
    return labels;
  });
}
