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
import { recipeFor } from "../recipe-for.ts";
import { readInitialWeights } from "./initial-weights.ts";
import { loadModelOf } from "./model-of-run.ts";
import { openRun } from "./open-run.ts";

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

const ofText = () => [`data.path=${JSON.stringify(join(folder, "text"))}`];

/** Begins a run on two ranks with these weights; resolves to the parameters of each rank, or throws. */
async function begin(name: string = "gpt-small", keys = ofText(), from = "weights"): Promise<TypedArray[][]> {
  const given = { recipe: name, overrides: [...keys, "steps=4"], initFrom: join(folder, from) };
  const weights = await readInitialWeights(given.initFrom);
  const recipe = recipeFor(given, weights);
  const groups = loopback(2);
  const args = { ...given, out: join(folder, "run"), weights };
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

it("what the command line says and config.json contradicts is refused, in a line for each key, before anything is made", async () => {
  await weights({ ...shape, heads: 4 });
  const keys = [...ofText(), "model.heads=2", "model.layers=1", "model.context=64", "model.dropout=0.2"];
  expect(await failure(begin("gpt-small", keys))).toBe(
    [
      `model.heads: is given as 2, and FILE says 4; leave it out`,
      `model.context: is given as 64, and FILE says 32; leave it out`,
    ]
      .join("\n")
      .replaceAll("FILE", join(folder, "weights", "config.json")),
  );
});

it("a vit begins with those of transformers, whose norms have another ε, and with pictures of another size", async () => {
  manualSeed(99);
  const small = { width: 32, heads: 2, layers: 1, patchSize: 8, imageSize: 32, classes: 10, eps: 1e-12 };
  const model = new Vit(small);
  await saveModel(join(folder, "weights"), model.stateDict(), model.config, model);
  const expected = await Promise.all(model.parameters().map((parameter) => parameter.toTypedArray()));
  expect(await begin("deit-tiny-cifar", ["data.name=made-images"])).toEqual([expected, expected]);
  const weights = await readInitialWeights(join(folder, "weights"));
  const recipe = recipeFor({ overrides: ["data.name=made-images", "data.size=64"] }, weights);
  expect((buildModel(recipe) as Vit).shape).toMatchObject({ imageSize: 64, eps: 1e-12 });
});

it("a folder without weights is named", async () => {
  mkdirSync(join(folder, "weights"));
  expect(await failure()).toContain(join(folder, "weights"));
});

it.each([
  ["pytorch_model.bin", "weights", ""],
  ["pytorch_model-00001-of-00002.bin", "weights", "pytorch_model-*-of-*.bin"],
  ["resnet18.pth", "weights/resnet18.pth", ""],
])("pickled weights are refused, %s, with the line that converts them", async (name, path, shards) => {
  mkdirSync(join(folder, "weights"));
  for (const other of ["optimizer.pt", "pytorch_model-00002-of-00002.bin"])
    if (shards !== "" || other === "optimizer.pt") writeFileSync(join(folder, "weights", other), "");
  const file = join(folder, "weights", name);
  writeFileSync(file, "");
  const message = await failure(begin("gpt-small", ofText(), path));
  expect(message).toContain(
    `${file} is pickled, and pickled weights are not read, because they can execute code. Python writes them as safetensors: python -c '`,
  );
  expect(message).toContain(
    shards ? `glob.glob(${JSON.stringify(join(folder, "weights", shards))})` : `torch.load(${JSON.stringify(file)}`,
  );
});
