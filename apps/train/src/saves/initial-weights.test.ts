/** What a folder with weights says of the run that begins with them. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { configFile, saveModel } from "@terse/checkpoint";
import { datasets } from "@terse/data";
import { Bert, BertClassifier, Gpt, Gpt2, type Gpt2Options, Llama, type Model, ResNet, Vit } from "@terse/models";
import { manualSeed, type Tensor } from "@terse/tensor";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Recipe } from "../recipe.ts";
import { recipeFor } from "../recipe-for.ts";
import { otherTokenizerRemark, readInitialWeights, remarksOnWeights } from "./initial-weights.ts";
import { loadModelOf } from "./model-of-run.ts";

let folder: string;
beforeEach(() => {
  manualSeed(1);
  folder = mkdtempSync(join(tmpdir(), "terse-initial-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const small = { width: 16, heads: 2, layers: 1 };
const ofText = { ...small, vocabulary: 300, context: 24 };

async function save(model: Model, { config = {}, more = [] as (readonly [string, Tensor])[] } = {}): Promise<void> {
  await saveModel(folder, [...model.stateDict(), ...more], { ...model.config, ...config }, model);
}

async function recipeOf(
  overrides: readonly string[] = [],
  given: { recipe?: string; newHead?: true } = {},
): Promise<Recipe> {
  const weights = await readInitialWeights(folder);
  return recipeFor({ ...given, overrides }, weights);
}

describe("the recipe of a run that begins with weights has their model", () => {
  const path = "data.path=text";

  it.each<[string, () => Model, readonly string[], object, object]>([
    ["gpt", () => new Gpt({ ...ofText, tied: true }), [], { ...ofText, tied: true }, { name: "text", path: "text" }],
    [
      "gpt2",
      () => new Gpt2({ ...ofText, dropout: 0.2, eps: 1e-3 }),
      [],
      { ...ofText, dropout: 0.2, attentionDropout: 0.2, eps: 1e-3 },
      { name: "text" },
    ],
    [
      "llama",
      () => new Llama({ ...ofText, architecture: "mistral", hidden: 8, window: 5, keyValueHeads: 1 }),
      [],
      { ...ofText, architecture: "mistral", hidden: 8, window: 5, keyValueHeads: 1, headWidth: 8 },
      { name: "text" },
    ],
    [
      "bert",
      () => new Bert({ ...ofText, hidden: 8, eps: 1e-3, dropout: 0.2, attentionDropout: 0.3 }),
      [],
      { ...ofText, hidden: 8, eps: 1e-3, dropout: 0.2, attentionDropout: 0.3 },
      { name: "masked-text" },
    ],
    [
      "bert-classifier",
      () => new BertClassifier({ ...ofText, classes: 3 }),
      [],
      ofText,
      { name: "labelled-text", classes: 3 },
    ],
    [
      "resnet",
      () => new ResNet({ depth: 34, width: 4, classes: 3 }),
      ["data.classes=3"],
      { depth: 34, width: 4, stem: "imagenet" },
      { name: "image-folder", size: 224, resize: true },
    ],
    [
      "resnet",
      () => new ResNet({ stem: "cifar", width: 4, classes: 3 }),
      ["data.name=made-images"],
      { width: 4, stem: "cifar" },
      { name: "made-images", size: 32 },
    ],
    [
      "vit",
      () => new Vit({ ...small, imageSize: 32, patchSize: 8, classes: 3, distilled: true, eps: 1e-3 }),
      ["data.classes=3"],
      { ...small, distilled: true, eps: 1e-3 },
      { name: "image-folder", size: 32, resize: true },
    ],
  ])("%s", async (name, create, overrides, model, data) => {
    await save(create(), name === "gpt" ? { config: { model_type: "gpt" } } : {});
    const recipe = await recipeOf([...(overrides.includes("data.name=made-images") ? [] : [path]), ...overrides]);
    expect(recipe.model).toMatchObject({ name, ...model });
    expect(recipe.data).toMatchObject({ ...data, batchSize: 4 });
  });

  it("with rows of at most 1,024 tokens, unless their number is given", async () => {
    const ropeScaling = { name: "linear", factor: 2 } as const;
    await save(new Llama({ ...ofText, context: 4096, hidden: 8, ropeScaling }));
    const recipe = await recipeOf([path]);
    expect(recipe).toMatchObject({ data: { blockSize: 1024 }, model: { context: 4096, ropeScaling } });
    const remarks = remarksOnWeights(await readInitialWeights(folder), recipe, "given").join("\n");
    expect(remarks).toContain("rows have 1024 tokens, of the 4096 that the model can read: data.blockSize");
    expect(remarks).toContain('ropeScaling {"name":"linear","factor":2}');
    expect(await recipeOf([path, "data.blockSize=64"])).toMatchObject({ data: { blockSize: 64 } });
  });

  it("with the size, mean and deviation of its pictures", async () => {
    await save(new Vit({ ...small, imageSize: 32, patchSize: 8, classes: 3 }));
    const processor = { size: { height: 48, width: 48 }, image_mean: [0.5, 0.5, 0.5], image_std: [0.25, 0.5, 0.75] };
    writeFileSync(join(folder, "preprocessor_config.json"), JSON.stringify(processor));
    const { data } = await recipeOf([path, "data.deviation=[1, 1, 1]"]);
    expect(data).toMatchObject({
      name: "image-folder",
      size: 48,
      mean: [0.5, 0.5, 0.5],
      deviation: [1, 1, 1],
      resize: true,
    });
    await expect(recipeOf([path, "data.mean=[1, 1]"])).rejects.toThrow(/data\.mean: .*three numbers/);
  });

  it("for the data that is named, also in another recipe: a classifier from weights of pre-training", async () => {
    await save(new Bert({ ...ofText, hidden: 8 }));
    const overrides = ["data.name=labelled-text", path, "data.classes=5"];
    const recipe = await recipeOf(overrides, { newHead: true });
    expect(recipe.model).toMatchObject({ name: "bert-classifier", ...ofText, hidden: 8 });
    expect(recipe.data).toMatchObject({ name: "labelled-text", classes: 5 });
    expect((await recipeOf([path], { recipe: "bert-tiny-one-bit-lamb" })).optimizer.name).toBe("one-bit-lamb");
  });

  it("with what the command line chooses and the weights leave open", async () => {
    await save(new Gpt2({ ...ofText, dropout: 0.2 }));
    const { model } = await recipeOf([path, "model.dropout=0", "model.width=16"]);
    expect(model).toMatchObject({ dropout: 0, attentionDropout: 0.2, width: 16 });
  });

  it.each([
    [["model.layers=2"], /^model\.layers: is given as 2, and .*config\.json says 1; leave it out$/],
    [["model.eps=1e-6"], /^model\.eps: is given as 0\.000001, and .*config\.json says 0\.00001; leave it out$/],
    [["model.preset=gpt2-xl"], /^model\.preset: gpt2-xl has vocabulary 50257, and .* says 300; leave it out$/],
    [["model.name=gpt"], /^model\.name: is given as gpt, and .* describes gpt2; leave it out$/],
    [["model={ name: gpt2, heads: 4 }"], /^model\.heads: is given as 4, and .* says 2; leave it out$/],
    [["model.layer=2"], /did you mean layers/],
  ])("and is refused where the command line contradicts them: %s", async (overrides, message) => {
    await save(new Gpt2(ofText));
    await expect(recipeOf([path, ...overrides])).rejects.toThrow(message);
  });

  it("or that of the recipe, where the folder has no config.json", async () => {
    await save(new Gpt2(ofText));
    rmSync(join(folder, configFile));
    expect((await recipeOf([path, "model.name=gpt2", "model.layers=3"])).model).toMatchObject({
      name: "gpt2",
      layers: 3,
    });
  });
});

describe("the tokenizer of a run that begins with weights", () => {
  const tokenizerOf = async (options: Gpt2Options, overrides: readonly string[] = []) => {
    await save(new Gpt2(options));
    return ((await recipeOf(["data.path=text", ...overrides])).data as { tokenizer?: string }).tokenizer;
  };

  it("is the one in the folder, else the known one of as many tokens, else that of the recipe", async () => {
    expect(await tokenizerOf({ ...ofText, vocabulary: 50304 })).toBe("gpt2");
    expect(await tokenizerOf({ ...ofText, vocabulary: 256 })).toBe("bytes");
    expect(await tokenizerOf(ofText)).toBe("bytes");
    writeFileSync(join(folder, "tokenizer.json"), "{}");
    expect(await tokenizerOf(ofText)).toBe(folder);
    expect(await tokenizerOf(ofText, ["data.tokenizer=bytes"])).toBe("bytes");
    const weights = await readInitialWeights(folder);
    const recipe = recipeFor({ overrides: ["data.path=text", "data.tokenizer=bytes"] }, weights);
    for (const same of [folder, join(folder, "tokenizer.json"), relative(".", folder)])
      expect(otherTokenizerRemark({ ...recipe.data, tokenizer: same } as Recipe["data"], folder)).toEqual([]);
    expect(remarksOnWeights(weights, recipe, "given")).toContain(
      `data.tokenizer is bytes, and the weights come with another one, ${folder}: tokens may mean something else`,
    );
  });

  it("is not guessed in silence", async () => {
    const recipe = async () =>
      remarksOnWeights(await readInitialWeights(folder), await recipeOf(["data.path=text"]), "given");
    await save(new Gpt2(ofText));
    expect(await recipe()).toContain(
      "data.tokenizer is bytes, and the weights come with no tokenizer.json: tokens may mean something else; name theirs, --data.tokenizer=FILE",
    );
    await save(new Gpt2({ ...ofText, vocabulary: 256 }));
    expect(await recipe()).toHaveLength(1);
  });

  it.each(["vocab.json", "vocab.txt", "tokenizer.model", "spiece.model"])(
    "is not guessed where there is a %s",
    async (file) => {
      writeFileSync(join(folder, file), "{}");
      for (const vocabulary of [256, 300, 50257])
        await expect(tokenizerOf({ ...ofText, vocabulary })).rejects.toThrow(
          `${folder} has its tokenizer in ${file}, and no tokenizer.json, which alone is read; transformers writes it: python -c 'from transformers import AutoTokenizer as T; f = ${JSON.stringify(folder)}; T.from_pretrained(f).save_pretrained(f)', or name another one, --data.tokenizer=FILE`,
        );
      expect(await tokenizerOf(ofText, ["data.tokenizer=bytes"])).toBe("bytes");
      expect(await tokenizerOf(ofText, ["data.name=tokens"])).toBeUndefined();
    },
  );

  it("is not waited for where vocab.json is a pipe", async () => {
    execFileSync("mkfifo", [join(folder, "vocab.json")]);
    await expect(tokenizerOf({ ...ofText, vocabulary: 50257 })).rejects.toThrow(
      /vocab\.json: it is a pipe, not a file/,
    );
  });

  it("is GPT-2's where vocab.json is GPT-2's", async () => {
    const { "tokenizer.json": json } = (await datasets.text.processorFiles!({ tokenizer: "gpt2" }))!;
    const { vocab } = JSON.parse(json!).model;
    writeFileSync(join(folder, "vocab.json"), JSON.stringify({ ...vocab, "<|endoftext|>": 50256 }));
    expect(await tokenizerOf({ ...ofText, vocabulary: 50257 })).toBe("gpt2");
  });
});

describe("the weights of a base class", () => {
  const base = { architectures: ["LlamaModel"] };
  const llama = (tied: boolean) => new Llama({ ...ofText, hidden: 8, tied });

  it("are a whole model where the embedding is the head", async () => {
    await save(llama(true), { config: base });
    expect((await loadModelOf(folder)).parameterCount()).toBe(llama(true).parameterCount());
  });

  it("are refused where the head is missing, with the name of the file", async () => {
    const model = llama(false);
    const withoutHead = model.stateDict().filter(([name]) => name !== "lm_head.weight");
    await saveModel(folder, withoutHead, { ...model.config, ...base });
    await expect(loadModelOf(folder)).rejects.toThrow(
      /model\.safetensors does not fit this model: missing lm_head\.weight\. .* or the model's head is missing/,
    );
  });
});

describe("weights whose head differs from the embedding, though config.json says that they are tied", () => {
  it.each([
    ["gpt2", () => new Gpt2({ ...ofText, tied: false }), { tie_word_embeddings: true }],
    ["gpt", () => new Gpt({ ...ofText, tied: false }), { model_type: "gpt", tied: true }],
  ])("are those of a model that is not: %s", async (_, create, config) => {
    const untied = create();
    await save(untied, { config });
    const remarks: string[] = [];
    const model = await loadModelOf(folder, { remark: (words) => remarks.push(words) });
    for (const [i, [name, tensor]] of model.stateDict().entries()) {
      expect(name).toBe(untied.stateDict()[i]![0]);
      expect(tensor.equal(untied.stateDict()[i]![1])).toBe(true);
    }
    expect(remarks).toEqual([
      expect.stringMatching(
        /^the weights have (lm_head|head)\.weight with other values than the embedding: the model is not tied/,
      ),
    ]);
    const weights = await readInitialWeights(folder);
    const recipe = recipeFor({ overrides: ["data.path=text"] }, weights);
    expect(recipe.model).toMatchObject({ tied: false });
    expect(remarksOnWeights(weights, recipe, "given")).toContain(remarks[0]);
    expect(() => recipeFor({ overrides: ["data.path=text", "model.tied=true"] }, weights)).toThrow(
      /^model\.tied: is given as true, and the weights next to .* have (lm_head|head)\.weight with other values/,
    );
  });
});

it.each([
  [{ n_layer: 0 }, /config\.json describes no model that is known here: n_layer: /],
  [{ n_layer: 0, n_embd: 1.5 }, /known here: n_embd: [^\n]*, got 1\.5; n_layer: [^\n]*, got 0; n_head: [^\n]*$/],
  [{ n_layer: 10_000 }, /config\.json describes a model of \d+ parameters, and model\.safetensors has \d+/],
  [{ activation_function: "relu" }, /activation_function: is "relu", and only "gelu_new" or/],
  [{ model_type: "gemma2", architectures: ["Gemma2ForCausalLM"] }, /model_type: unknown name "gemma2"/],
])("a config.json that the model here does not compute is refused by its key: %o", async (config, message) => {
  await save(new Gpt2(ofText), { config });
  await expect(readInitialWeights(folder)).rejects.toThrow(message);
});

it("a recipe for trained weights, or one that extends it, is refused without weights", async () => {
  const own = join(folder, "mine.yaml");
  writeFileSync(own, "extends: fine-tune\nsteps: 10\n");
  for (const recipe of ["fine-tune", own])
    expect(() => recipeFor({ recipe, overrides: ["data.path=text"] })).toThrow(/^trainedWeights: .*--init-from FOLDER/);
  expect(recipeFor({ recipe: own, overrides: ["trainedWeights=false"] }).steps).toBe(10);
  await save(new Gpt2(ofText));
  expect(recipeFor({ recipe: own, overrides: ["data.path=text"] }, await readInitialWeights(folder)).steps).toBe(10);
});

it("a rate of a recipe for random weights is remarked on, one that is given and that of fine-tune are not", async () => {
  await save(new Gpt2(ofText));
  const weights = await readInitialWeights(folder);
  const remarks = (recipe: string, whose: "of a recipe here" | "given") =>
    remarksOnWeights(weights, recipeFor({ recipe, overrides: ["data.path=text"] }, weights), whose).join("\n");
  expect(remarks("gpt-small", "of a recipe here")).toMatch(/optimizer\.lr is 0\.002, .*take --recipe fine-tune/);
  expect(remarks("gpt-small", "given")).not.toMatch(/optimizer\.lr/);
  expect(remarks("fine-tune", "of a recipe here")).not.toMatch(/optimizer\.lr/);
});
