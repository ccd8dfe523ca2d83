/** Runs that begin with the weights of a folder in the layout of Hugging Face. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { Gpt2, type Gpt2Options, Vit } from "@terse/models";
import { Arena, manualSeed, type TypedArray } from "@terse/tensor";
import { afterEach, beforeEach, expect, it } from "vitest";
import { buildData, buildModel, buildOptimizer } from "../build.ts";
import { defaultRecipe, readRecipe } from "../recipe.ts";
import { loadModelOf } from "./model-of-run.ts";
import { openRun } from "./run.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-init-from-"));
  writeFileSync(join(folder, "text"), "the quick brown fox jumps over the lazy dog. ".repeat(200));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const shape = { vocabulary: 256, context: 32, width: 32, heads: 2, layers: 1 };

/** A folder with random weights; `names` changes those of its tensors. */
async function weights(options: Gpt2Options, { names = (name: string) => name, shardBytes = 1e9 } = {}): Promise<Gpt2> {
  manualSeed(99);
  const model = new Gpt2(options);
  const renamed = model.namedParameters().map(([name, parameter]) => [names(name), parameter] as const);
  await saveModel(join(folder, "weights"), renamed, model.config, { shardBytes });
  return model;
}

const ofText = () => [
  "model.name=gpt2",
  "model.preset=tiny",
  ...Object.entries(shape).map(([key, value]) => `model.${key}=${value}`),
  `data.path=${JSON.stringify(join(folder, "text"))}`,
];

/** Begins a run on two ranks with these weights; resolves to the parameters of each rank, or throws. */
async function begin(name: string | URL = defaultRecipe, keys = ofText(), from = "weights"): Promise<TypedArray[][]> {
  const recipe = readRecipe(name, [...keys, "steps=4"]);
  const groups = loopback(2);
  const args = { initFrom: join(folder, from), out: join(folder, "run"), overrides: [] };
  mkdirSync(args.out, { recursive: true });
  try {
    return await Promise.all(
      groups.map(async (group) => {
        await using run = await openRun(recipe, group, args);
        const model = buildModel(recipe);
        const data = await buildData(recipe, model, group);
        await using optimizer = await buildOptimizer(recipe, new Arena(model), group);
        await run.begin({ model, data, optimizer });
        return Promise.all(model.parameters().map((parameter) => parameter.toTypedArray()));
      }),
    );
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

const failure = (begun = begin()): Promise<string> =>
  begun.then(
    () => expect.unreachable(),
    (error: Error) => error.message,
  );

it.each([
  ["of one file", {}],
  ["of shards", { shardBytes: 20_000 }],
  ["with the names of GPT2Model", { names: (name: string) => name.replace("transformer.", "") }],
])("every rank begins with the weights of a folder %s", async (_, how) => {
  const model = await weights(shape, how);
  const expected = await Promise.all(model.parameters().map((parameter) => parameter.toTypedArray()));
  expect(await begin()).toEqual([expected, expected]);
  const loaded = await loadModelOf(join(folder, "weights"));
  expect(await Promise.all(loaded.parameters().map((parameter) => parameter.toTypedArray()))).toEqual(expected);
});

it("weights of other shapes, or of other heads in the same shapes, are refused in one line", async () => {
  await weights({ ...shape, width: 16 });
  expect(await failure()).toMatch(
    /does not fit this model: transformer\.wte\.weight is \(256, 16\) in the file and \(256, 32\) in the model; .*and \d+ more\. /,
  );
  rmSync(join(folder, "run"), { recursive: true, force: true });
  await weights({ ...shape, heads: 4 });
  expect(await failure()).toMatch(
    /weights are for another model: n_head is 4 there and 2 here \(--model\.heads=4 here too\)$/,
  );
});

it("a vit begins with those of transformers, whose norms have another ε", async () => {
  manualSeed(99);
  const small = { width: 32, heads: 2, layers: 1, patchSize: 8 };
  const model = new Vit({ ...small, imageSize: 32, classes: 10, eps: 1e-12 });
  await saveModel(join(folder, "weights"), model.stateDict(), model.config, model);
  const given = Object.entries(small).map(([key, value]) => `model.${key}=${value}`);
  const keys = ["model.name=vit", "data.name=made-images", ...given];
  expect(await failure(begin("deit-tiny-cifar", keys))).toMatch(
    /layer_norm_eps is 1e-12 there and 0\.000001 here \(--model\.eps=1e-12 here too\)$/,
  );
  rmSync(join(folder, "run"), { recursive: true, force: true });
  const expected = await Promise.all(model.parameters().map((parameter) => parameter.toTypedArray()));
  expect(await begin("deit-tiny-cifar", [...keys, "model.eps=1e-12"])).toEqual([expected, expected]);
});

it("a folder without weights is named", async () => {
  mkdirSync(join(folder, "weights"));
  expect(await failure()).toContain(join(folder, "weights"));
});

it.each([
  ["pytorch_model.bin", "weights"],
  ["resnet18.pth", "weights/resnet18.pth"],
])("pickled weights are refused, %s, with the line that converts them", async (name, path) => {
  mkdirSync(join(folder, "weights"));
  const file = join(folder, "weights", name);
  writeFileSync(file, "");
  expect(await failure(begin(defaultRecipe, ofText(), path))).toMatch(
    `${file} is pickled, and pickled weights are not read, because they can execute code. Python writes them as safetensors: python -c '`,
  );
});
