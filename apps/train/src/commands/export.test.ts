/** Exports of the saves of runs, opened by other libraries. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSafetensors } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { type DatasetEntry, datasets, openTokenizer } from "@terse/data";
import type { Bert, BertClassifier, Gpt2, ResNet, Vit } from "@terse/models";
import { Arena, fromTypedArray, manualSeed, noGrad, ones, randint, randn, type Tensor } from "@terse/tensor";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { needsModules, relativeError, runPython } from "../../../../packages/tensor/src/testing/python.ts";
import { buildData, buildModel, buildOptimizer } from "../build.ts";
import { defaultRecipe, readRecipe } from "../recipe.ts";
import { loadModelOf } from "../saves/model-of-run.ts";
import { openRun } from "../saves/run.ts";
import { exportCommand } from "./export.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-export-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const text = join(folder, "text");
beforeAll(() => writeFileSync(text, "the quick brown fox jumps over the lazy dog.\n\n".repeat(200)));
beforeEach(() => {
  for (const stream of [process.stdout, process.stderr]) vi.spyOn(stream, "write").mockReturnValue(true);
  return () => vi.restoreAllMocks();
});

/** Saves a run after no step, on two ranks, with weights that all differ from their first values. */
async function save(out: string, keys: readonly string[]): Promise<void> {
  const recipe = readRecipe(defaultRecipe, [...keys, "steps=4"]);
  const groups = loopback(2);
  mkdirSync(out);
  try {
    await Promise.all(
      groups.map(async (group) => {
        await using run = await openRun(recipe, group, { out, overrides: [] });
        manualSeed(7);
        const model = buildModel(recipe);
        noGrad(() => {
          for (const p of model.parameters()) p.add_(randn(p.shape), { alpha: 0.05 });
        });
        const data = await buildData(recipe, model, group);
        await using optimizer = await buildOptimizer(recipe, new Arena(model), group);
        await run.begin({ model, data, optimizer });
        expect(await run.save(1)).toBeUndefined();
      }),
    );
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

const small = ["model.preset=tiny", "model.width=32", "model.heads=2", "model.layers=1"];
const ofImages = ["data.name=made-images", "data.size=16", "model.labelSmoothing=0.1"];
const tokens = () => randint(0, 200, [2, 12]);
const ofBert = () => ({ tokens: tokens(), segments: randint(0, 2, [2, 12]), mask: ones([2, 12], { dtype: "i64" }) });
const labelled = join(folder, "labelled");

interface Case {
  readonly keys: readonly string[];
  readonly auto: string; // transformers' class
  readonly inputs: () => Readonly<Record<string, Tensor>>;
  readonly read: string; // their names there
  logits(model: object, inputs: Readonly<Record<string, Tensor>>): Tensor;
  readonly tokenizer?: string;
}

const readBert = `input_ids=inputs["tokens"], attention_mask=inputs["mask"], token_type_ids=inputs["segments"]`;
const cases: Readonly<Record<string, Case>> = {
  gpt2: {
    keys: ["model.name=gpt2", ...small, "data.tokenizer=gpt2", "model.vocabulary=50257", `data.path=${text}`],
    auto: "AutoModelForCausalLM",
    inputs: () => ({ tokens: tokens() }),
    read: `input_ids=inputs["tokens"]`,
    logits: (model, { tokens }) => (model as Gpt2).forward(tokens!),
    tokenizer: "gpt2",
  },
  bert: {
    keys: [
      "model.name=bert",
      ...small,
      "model.vocabulary=260",
      "data.name=masked-text",
      "data.blockSize=24",
      `data.path=${text}`,
    ],
    auto: "AutoModelForPreTraining",
    inputs: ofBert,
    read: readBert,
    logits: (model, inputs) => (model as Bert).forward(inputs as ReturnType<typeof ofBert>).tokens,
    tokenizer: "bytes",
  },
  "bert-classifier": {
    keys: [
      "model.name=bert-classifier",
      ...small,
      "model.vocabulary=260",
      "data.name=labelled-text",
      `data.path=${labelled}`,
    ],
    auto: "AutoModelForSequenceClassification",
    inputs: ofBert,
    read: readBert,
    logits: (model, inputs) => (model as BertClassifier).forward(inputs as ReturnType<typeof ofBert>),
    tokenizer: "bytes",
  },
  vit: {
    keys: ["model.name=vit", "model.preset=deit-tiny-distilled", "model.patchSize=8", "model.layers=2", ...ofImages],
    auto: "AutoModelForImageClassification",
    inputs: () => ({ images: randn([2, 3, 16, 16]) }),
    read: `pixel_values=inputs["images"]`,
    logits: (model, { images }) => (model as Vit).forward(images!),
  },
  resnet: {
    keys: ["model.name=resnet", "model.preset=resnet18", "model.width=8", ...ofImages],
    auto: "AutoModelForImageClassification",
    inputs: () => ({ images: randn([2, 3, 16, 16]) }),
    read: `pixel_values=inputs["images"]`,
    logits: (model, { images }) => (model as ResNet).forward(images!),
  },
};

const missing = needsModules("transformers", "safetensors");

describe.skipIf(missing !== "")(`the export of a run${missing}`, () => {
  beforeAll(async () => {
    mkdirSync(labelled);
    writeFileSync(join(labelled, "train.tsv"), `sentence\tlabel\n${"a lion\t1\na cub\t0\n".repeat(40)}`);
    await runPython("from transformers import AutoModel, logging; logging.disable_progress_bar()"); // takes a moment
  }, 180_000);

  it.each(Object.keys(cases))(
    "of %s opens in transformers, with the logits of the model and the tokenizer of the data",
    async (name) => {
      const { keys, auto, inputs, read, logits, tokenizer } = cases[name]!;
      const [run, out] = [join(folder, name), join(folder, `${name}-model`)];
      await save(run, keys);
      await exportCommand([run, "--out", out]);
      const processor = tokenizer ? ["tokenizer.json", "tokenizer_config.json"] : ["preprocessor_config.json"];
      expect(readdirSync(out).sort()).toEqual(["config.json", "model.safetensors", ...processor].sort());
      const given = inputs();
      const found = await runPython(
        `
import transformers
model, info = transformers.${auto}.from_pretrained(${JSON.stringify(out)}, output_loading_info=True)
assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
outputs["logits"] = model(${read})[0]
if ${tokenizer ? "True" : "False"}:
    t = transformers.AutoTokenizer.from_pretrained(${JSON.stringify(out)})
    outputs["ids"] = torch.tensor(t("a lion cub", add_special_tokens=False)["input_ids"])`,
        given,
      );
      const model = (await loadModelOf(run)).eval();
      expect(
        relativeError(
          noGrad(() => logits(model, given)),
          found["logits"]!,
        ),
      ).toBeLessThan(1e-5);
      if (tokenizer)
        expect(Array.from(await found["ids"]!.toTypedArray(), Number)).toEqual([
          ...(await (await openTokenizer(tokenizer)).encode("a lion cub")),
        ]);
    },
    180_000,
  );

  // Needs no model: transformers finds the processor by its own file.
  it.each<[string, readonly string[], readonly [number, number]]>([
    ["made-images", ["size=16"], [16, 16]],
    ["cifar10", [], [32, 32]],
    ["cifar10", ["path=cifar"], [32, 32]],
    ["cifar100", ["path=cifar"], [32, 32]],
    ["image-folder", ["path=pictures", "classes=2", "size=24"], [24, 24]],
    ["image-folder", ["path=pictures", "classes=2", "size=24"], [24, 32]], // its sides are cut
  ])(
    "of data %s %j has a processor that gives what the data gives",
    async (name, options, [height, width]) => {
      const { data } = readRecipe("resnet18-cifar", [
        `data.name=${name}`,
        ...options.map((option) => `data.${option}`),
      ]);
      const entry: DatasetEntry = datasets[data.name];
      const out = mkdtempSync(join(folder, "processor-"));
      for (const [file, content] of Object.entries((await entry.processorFiles!(data))!))
        writeFileSync(join(out, file), content);
      const found = await runPython(
        `
import transformers, numpy
from PIL import Image
processor = transformers.AutoImageProcessor.from_pretrained(${JSON.stringify(out)})
pixels = numpy.arange(${height * width * 3}, dtype=numpy.int64).reshape(${height}, ${width}, 3) * 7 % 256
outputs["images"] = torch.as_tensor(processor(Image.fromarray(pixels.astype("uint8")), return_tensors="pt")["pixel_values"])`,
        {},
      );
      const of = {
        cifar10: [
          [0.4914, 0.4822, 0.4465],
          [0.247, 0.2435, 0.2616],
        ],
        cifar100: [
          [0.5071, 0.4865, 0.4409],
          [0.2673, 0.2564, 0.2762],
        ],
        "image-folder": [
          [0.485, 0.456, 0.406],
          [0.229, 0.224, 0.225],
        ],
      } as const;
      const made = [
        [0.5, 0.5, 0.5],
        [0.25, 0.25, 0.25],
      ] as const;
      const [mean, deviation] =
        (name === "cifar10" && options.length === 0 ? undefined : of[name as "cifar10"]) ?? made;
      const side = Math.min(height, width);
      const left = Math.floor((width - side) / 2);
      const expected = Float32Array.from({ length: 3 * side * side }, (_, i) => {
        const [channel, row, column] = [Math.floor(i / side ** 2), Math.floor(i / side) % side, i % side];
        const byte = ((3 * (row * width + left + column) + channel) * 7) % 256;
        return (byte / 255 - mean[channel]!) / deviation[channel]!;
      });
      expect(found["images"]!.shape).toEqual([1, 3, side, side]);
      expect(relativeError(fromTypedArray(expected, [1, 3, side, side]), found["images"]!)).toBeLessThan(1e-6);
    },
    60_000,
  );
});

it("has the names of timm and torchvision with --own-names, and no config.json", async () => {
  const run = join(folder, "own");
  await save(run, cases["vit"]!.keys);
  await exportCommand([run, "--own-names", "--out", join(folder, "own-model")]);
  expect(readdirSync(join(folder, "own-model"))).toEqual(["model.safetensors"]);
  const stored = await readSafetensors(join(folder, "own-model", "model.safetensors"));
  const model = await loadModelOf(run);
  expect([...stored.keys()].sort()).toEqual(
    model
      .stateDict()
      .map(([name]) => name)
      .sort(),
  );
  expect(stored.get("blocks.0.attn.qkv.weight")!.data).toEqual(
    await model
      .stateDict()
      .find(([name]) => name === "blocks.0.attn.qkv.weight")![1]
      .toTypedArray(),
  );
});

it("is written without a tokenizer whose file is no longer there, and says so", async () => {
  const [run, file] = [join(folder, "gone"), join(folder, "tokenizer.json")];
  const files = await (datasets.text as DatasetEntry).processorFiles!({ tokenizer: "bytes" });
  writeFileSync(file, files!["tokenizer.json"]!);
  await save(run, [
    "model.name=gpt",
    "model.preset=nano",
    `data.tokenizer=${file}`,
    `data.path=${text}`,
    "data.blockSize=4",
  ]);
  rmSync(file);
  await exportCommand([run, "--out", join(folder, "gone-model")]);
  expect(readdirSync(join(folder, "gone-model")).sort()).toEqual(["config.json", "model.safetensors"]);
  expect(vi.mocked(process.stderr.write).mock.calls.join()).toMatch(/without a tokenizer: Cannot read the tokenizer/);
});
