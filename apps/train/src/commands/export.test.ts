/** Exports of the saves of runs, opened by other libraries. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSafetensors, saveModel, writeSafetensors } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { type DatasetEntry, datasets, openTokenizer } from "@terse/data";
import { type Bert, type BertClassifier, Gpt2, Llama, type ResNet, type Vit } from "@terse/models";
import { Arena, fromTypedArray, manualSeed, noGrad, ones, randint, randn, type Tensor } from "@terse/tensor";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { needsModules, relativeError, runPython } from "../../../../packages/tensor/src/testing/python.ts";
import { readArguments, type SampleArguments } from "../arguments.ts";
import { buildData, buildModel, buildOptimizer } from "../build.ts";
import type { EvalArguments } from "../eval/eval-arguments.ts";
import { readSubject } from "../eval/subject.ts";
import { readRecipe } from "../recipe.ts";
import { recipeFor } from "../recipe-for.ts";
import { sample } from "../sample.ts";
import { withFoundTokenizer } from "../saves/found-tokenizer.ts";
import { readInitialWeights } from "../saves/initial-weights.ts";
import { loadModelOf, saveOfModel } from "../saves/model-of-run.ts";
import { openRun } from "../saves/open-run.ts";
import { exportCommand } from "./export.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-export-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const text = join(folder, "text");
beforeAll(() => writeFileSync(text, "the quick brown fox jumps over the lazy dog.\n\n".repeat(200)));
beforeEach(() => {
  for (const stream of [process.stdout, process.stderr]) vi.spyOn(stream, "write").mockReturnValue(true);
  return () => vi.restoreAllMocks();
});

/**
 * Saves a run after no step, on two ranks, with weights that all differ from their first values. Resolves to what the
 * user is told.
 */
async function save(out: string, keys: readonly string[], initFrom?: string): Promise<readonly string[]> {
  const overrides = [...keys, "steps=4"];
  const weights = initFrom === undefined ? undefined : await readInitialWeights(initFrom);
  const recipe = weights ? recipeFor({ overrides }, weights) : readRecipe("gpt-small", overrides);
  const groups = loopback(2);
  mkdirSync(out);
  try {
    const notes = await Promise.all(
      groups.map(async (group) => {
        await using run = await openRun(recipe, group, { out, overrides, initFrom, weights });
        manualSeed(7);
        const model = buildModel(recipe);
        noGrad(() => {
          for (const p of model.parameters()) p.add_(randn(p.shape), { alpha: 0.05 });
        });
        const data = await buildData(recipe, model, group);
        await using optimizer = await buildOptimizer(recipe, new Arena(model), group);
        await run.begin({ model, data, optimizer });
        expect(await run.save(1)).toBeUndefined();
        return run.notes;
      }),
    );
    return notes[0]!;
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
  });

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

  const ofLlama =
    "hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16";

  it.each([
    ["GPT2", "n_positions=16, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0.2, embd_pdrop=0.3, attn_pdrop=0.4"],
    ["Llama", `rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}, ${ofLlama}`],
    ["Mistral", `sliding_window=7, head_dim=4, ${ofLlama}`],
    ["Qwen2", `use_sliding_window=True, sliding_window=7, max_window_layers=1, ${ofLlama}`],
    ["Qwen3", `attention_bias=True, head_dim=4, ${ofLlama}`],
  ])(
    "of a run that began with %s keeps how it generates, its special tokens and dropouts",
    async (name, config) => {
      const own = join(folder, `of-${name}`);
      mkdirSync(own);
      const [theirs, run] = [join(own, "theirs"), join(own, "tuned")];
      await runPython(`
import transformers as t
from tokenizers import Tokenizer, models, pre_tokenizers, decoders
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
inner = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
tokenizer = t.PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
tokenizer.chat_template = "{{ messages[0].content }}"
tokenizer.save_pretrained(${JSON.stringify(theirs)})
config = t.${name}Config(${config}, vocab_size=len(tokenizer),
  bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
model = t.AutoModelForCausalLM.from_config(config)
model.generation_config = t.GenerationConfig(do_sample=True, top_k=7, eos_token_id=tokenizer.eos_token_id, max_new_tokens=5)
model.save_pretrained(${JSON.stringify(theirs)})`);
      await save(run, [`data.path=${text}`], theirs);
      const compare = (out: string) =>
        runPython(`
import transformers as t
for read in (t.GenerationConfig, t.AutoConfig):
    a, b = (read.from_pretrained(f).to_dict() for f in (${JSON.stringify(theirs)}, ${JSON.stringify(out)}))
    for key in ("_name_or_path", "transformers_version", "dtype", "torch_dtype"): a.pop(key, None), b.pop(key, None)
    assert a == {key: b.get(key) for key in a}, (a, b)
a, b = (t.AutoTokenizer.from_pretrained(f) for f in (${JSON.stringify(theirs)}, ${JSON.stringify(out)}))
assert a.special_tokens_map == b.special_tokens_map and a.chat_template == b.chat_template, (a, b)
assert a("an <s> wörd</s>") == b("an <s> wörd</s>")
t.AutoModelForCausalLM.from_pretrained(${JSON.stringify(out)})`);
      const exported = async (from: string, to: string) => {
        const out = join(own, to);
        await exportCommand([from, "--out", out]);
        await compare(out);
        return out;
      };
      const first = await exported(run, "tuned-model");
      await exported(first, "again"); // an export of an export
      await save(join(own, "tuned-again"), [`data.path=${text}`], first);
      await exported(join(own, "tuned-again"), "tuned-again-model");
      renameSync(theirs, join(own, "moved")); // the run has what it needs
      const out = join(own, "without");
      await exportCommand([run, "--out", out]);
      expect(readdirSync(out).sort()).toEqual(readdirSync(first).sort());
      expect(vi.mocked(process.stderr.write).mock.calls.join()).not.toMatch(/without a tokenizer/);
    },
    180_000,
  );

  it("of a classifier has the names of its classes: the data's, else those of the weights that it began with", async () => {
    const pictures = join(folder, "zoo");
    for (const name of ["cat", "dog", "zebra"]) mkdirSync(join(pictures, name), { recursive: true });
    await runPython(`
from PIL import Image
for name in ("cat", "dog", "zebra"):
    for i in range(8): Image.new("RGB", (16, 16), (i, i, i)).save(f${JSON.stringify(join(pictures, "{name}"))} + f"/{i}.png")`);
    const labels = (out: string) => {
      const { id2label, label2id } = JSON.parse(readFileSync(join(out, "config.json"), "utf8"));
      expect(label2id).toEqual(Object.fromEntries(Object.entries(id2label).map(([id, label]) => [label, Number(id)])));
      return Object.values(id2label);
    };
    const ofPictures = [`data.path=${pictures}`, "data.name=image-folder", "data.size=16", "data.classes=3"];
    const [run, out] = [join(folder, "zoo-run"), join(folder, "zoo-model")];
    await save(run, ["model.name=resnet", "model.preset=resnet18", "model.width=4", ...ofPictures]);
    await exportCommand([run, "--out", out]);
    expect(labels(out)).toEqual(["cat", "dog", "zebra"]);
    await save(join(folder, "made-run"), ["data.name=made-images", "data.size=16", "data.classes=3"], out);
    expect(labels(join(folder, "made-run", "step-1"))).toEqual(["cat", "dog", "zebra"]);
    const turned = join(folder, "zoo-turned");
    cpSync(out, turned, { recursive: true });
    const config = JSON.parse(readFileSync(join(turned, "config.json"), "utf8"));
    const id2label = { 0: "zebra", 1: "cat", 2: "dog" };
    writeFileSync(join(turned, "config.json"), JSON.stringify({ ...config, id2label }));
    await expect(save(join(folder, "turned-run"), ofPictures, turned)).rejects.toThrow(
      /^data: cat is class 0 there, and class 1 of the model; give .*, or train another head, --new-head$/,
    );
    await runPython(`
import transformers
model = transformers.AutoModelForImageClassification.from_pretrained(${JSON.stringify(join(folder, "zoo-model"))})
assert model.config.id2label == {0: "cat", 1: "dog", 2: "zebra"} and model.config.label2id["zebra"] == 2, model.config`);
    const words = join(folder, "words");
    mkdirSync(words);
    writeFileSync(join(words, "train.tsv"), `sentence\tlabel\n${"a lion\tcat\na wolf\tdog\n".repeat(40)}`);
    await save(join(folder, "words-run"), [
      ...cases["bert-classifier"]!.keys.slice(0, -1),
      `data.path=${words}`,
      "data.labels=[cat, dog]",
    ]);
    expect(labels(join(folder, "words-run", "step-1"))).toEqual(["cat", "dog"]);
  });

  // Needs no model: transformers finds the processor by its own file.
  it.each<[string, readonly string[], readonly [number, number]]>([
    ["made-images", ["size=16"], [16, 16]],
    ["cifar10", [], [32, 32]],
    ["cifar10", ["path=cifar"], [32, 32]],
    ["cifar100", ["path=cifar"], [32, 32]],
    ["image-folder", ["path=pictures", "classes=2", "size=24"], [24, 24]],
    ["image-folder", ["path=pictures", "classes=2", "size=24"], [24, 32]], // its sides are cut
    [
      "image-folder",
      ["path=pictures", "size=24", "classes=2", "mean=[0.5, 0.5, 0.5]", "deviation=[0.25, 0.25, 0.25]"],
      [24, 24],
    ],
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
      const half = [
        [0.5, 0.5, 0.5],
        [0.25, 0.25, 0.25],
      ] as const;
      const [mean, deviation] =
        (options.length === 0 || options.length > 4 ? undefined : of[name as "cifar10"]) ?? half;
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

describe("of a run whose tokenizer is no longer there", () => {
  const trained = async (name: string) => {
    const [run, file] = [join(folder, name), join(folder, `${name}.tok`)];
    const files = await (datasets.text as DatasetEntry).processorFiles!({ tokenizer: "bytes" });
    mkdirSync(join(folder, "elsewhere"), { recursive: true });
    writeFileSync(join(folder, "elsewhere", name), files!["tokenizer.json"]!);
    symlinkSync(join(folder, "elsewhere", name), file); // whoever names it means what it leads to
    const keys = ["model.name=gpt", "model.preset=nano", `data.path=${text}`, "data.blockSize=4"];
    await save(run, [...keys, `data.tokenizer=${file}`]);
    return { run, file };
  };

  it("has the tokenizer that the run has kept, and the run goes on with it", async () => {
    const { run, file } = await trained("kept-alone");
    await exportCommand([run, "--out", join(folder, "before")]);
    rmSync(file);
    await exportCommand([run, "--out", join(folder, "after")]);
    const [before, after] = ["before", "after"].map((name) => join(folder, name)) as [string, string];
    expect(readdirSync(after).sort()).toEqual([
      "config.json",
      "model.safetensors",
      "tokenizer.json",
      "tokenizer_config.json",
    ]);
    for (const name of readdirSync(before))
      expect(readFileSync(join(after, name))).toEqual(readFileSync(join(before, name)));
    const [group] = loopback(1);
    const { recipe } = saveOfModel(run).manifest;
    const found = await withFoundTokenizer(recipe, { folder: run, step: 1 }, { resume: run }, group!);
    await group!.close();
    expect(found.data).toMatchObject({ tokenizer: join(run, "initial-files") });
    expect(await sample(readArguments(["sample", run, "--prompt=the", "--bytes=2"]) as SampleArguments)).toBe(0);
  });

  it("is written without one where the run has none either, and says so", async () => {
    const { run, file } = await trained("gone");
    rmSync(file);
    rmSync(join(run, "initial-files"), { recursive: true });
    await exportCommand([run, "--out", join(folder, "gone-model")]);
    expect(readdirSync(join(folder, "gone-model")).sort()).toEqual(["config.json", "model.safetensors"]);
    expect(vi.mocked(process.stderr.write).mock.calls.join()).toMatch(/without a tokenizer: Cannot read the tokenizer/);
  });
});

it("a run goes on with the tokenizer that it has kept, where its weights are gone, and so does a run that begins with it", async () => {
  const [base, run, next] = ["base", "kept", "next"].map((name) => join(folder, name)) as [string, string, string];
  manualSeed(3);
  const gpt2 = new Gpt2({ vocabulary: 256, context: 16, width: 16, heads: 2, layers: 1 });
  await saveModel(base, gpt2.stateDict(), gpt2.config);
  const files = (await datasets.text.processorFiles!({ tokenizer: "bytes" }))!;
  for (const [name, text] of Object.entries(files)) writeFileSync(join(base, name), text);
  writeFileSync(join(base, "generation_config.json"), "{}");
  const keys = [`data.path=${text}`];
  await save(run, keys, base);
  rmSync(base, { recursive: true });

  const kept = join(run, "initial-files");
  const { recipe } = saveOfModel(run).manifest;
  expect((recipe.data as { tokenizer?: string }).tokenizer).toBe(base);
  const [group] = loopback(1);
  const found = await withFoundTokenizer(recipe, { folder: run, step: 1 }, { resume: run }, group!);
  await group!.close();
  expect(found).toEqual({ ...recipe, data: { ...recipe.data, tokenizer: kept } });
  expect((await readSubject({ run, overrides: [] } as unknown as EvalArguments)).recipe.data).toEqual(found.data);
  expect(await sample(readArguments(["sample", run, "--prompt=the", "--bytes=2"]) as SampleArguments)).toBe(0);

  await save(next, keys, run);
  rmSync(run, { recursive: true });
  await exportCommand([next, "--out", join(folder, "next-model")]);
  expect(readdirSync(join(folder, "next-model"))).toEqual(
    expect.arrayContaining(["generation_config.json", "tokenizer.json"]),
  );
});

describe("the export of a folder that somebody else made", () => {
  const foreign = async (name: string) => {
    const from = join(folder, name);
    manualSeed(3);
    const model = new Gpt2({ vocabulary: 256, context: 16, width: 16, heads: 2, layers: 1 });
    await saveModel(from, model.stateDict(), model.config);
    writeFileSync(join(folder, "secret"), "{}");
    return from;
  };

  it("has the files that are read as the model, and no others", async () => {
    const from = await foreign("foreign");
    for (const name of [
      "generation_config.json",
      "tokenizer.json",
      "model-backup.safetensors",
      "notes.txt",
      "tokenizer_x.json",
    ])
      writeFileSync(join(from, name), "{}");
    const out = join(folder, "foreign-model");
    await exportCommand([from, "--out", out]);
    expect(readdirSync(out).sort()).toEqual([
      "config.json",
      "generation_config.json",
      "model.safetensors",
      "tokenizer.json",
    ]);
  });

  it.each(["config.json", "model.safetensors", "tokenizer.json", "generation_config.json"])(
    "follows no link out of it: %s",
    async (name) => {
      const from = await foreign(`linked-${name}`);
      const outside = join(folder, `outside-${name}`);
      if (existsSync(join(from, name))) renameSync(join(from, name), outside);
      else writeFileSync(outside, "{}");
      symlinkSync(outside, join(from, name));
      const out = join(folder, `linked-${name}-model`);
      await expect(exportCommand([from, "--out", out])).rejects.toThrow(
        new RegExp(`${name} leads to .*outside-${name}, outside of its folder; put a copy of that file in its place`),
      );
      expect(readdirSync(out)).toEqual([]);
    },
  );

  it("lacks what a run could not keep, because a link leads out of the weights' folder, and the run says so", async () => {
    const from = await foreign("linked");
    symlinkSync(join(folder, "secret"), join(from, "generation_config.json"));
    writeFileSync(join(from, "special_tokens_map.json"), "{}");
    const [run, out] = [join(folder, "linked-run"), join(folder, "linked-model")];
    const notes = await save(run, [`data.path=${text}`], from);
    expect(notes.join("\n")).toMatch(
      /this run keeps no generation_config\.json, and its exports may lack it: .* leads to .*secret/,
    );
    await exportCommand([run, "--out", out]);
    expect(readdirSync(out)).not.toContain("generation_config.json");
  });

  it("is refused where a tensor is missing, unexpected or of another shape: all are named, and nothing is written", async () => {
    const from = await foreign("damaged");
    const out = join(folder, "damaged-model");
    const path = join(from, "model.safetensors");
    const stored = await readSafetensors(path);
    const gone = stored.get("transformer.h.0.mlp.c_fc.weight")!;
    stored.delete("transformer.h.0.mlp.c_fc.weight");
    stored.set("transformer.h.0.mlp.c_fx.weight", gone);
    stored.set("transformer.ln_f.bias", { dtype: "f32", shape: [3], data: new Float32Array(3) });
    await writeSafetensors(path, stored, {});
    await expect(exportCommand([from, "--out", out])).rejects.toThrow(
      /missing transformer\.h\.0\.mlp\.c_fc\.weight; unexpected transformer\.h\.0\.mlp\.c_fx\.weight; .*transformer\.ln_f\.bias is \(3\) in the file and \(16\) in the model/,
    );
    expect(existsSync(out)).toBe(false);
  });

  it.each<[string, (config: object) => object]>([
    ["a model that is not known here", (config) => ({ ...config, model_type: "mamba", architectures: ["Mamba"] })],
    ["what is not computed here", (config) => ({ ...config, scale_attn_by_inverse_layer_idx: true })],
  ])("is a copy of the weights where its config describes %s", async (name, changed) => {
    const from = await foreign(`unknown ${name}`);
    const config = join(from, "config.json");
    writeFileSync(config, JSON.stringify(changed(JSON.parse(readFileSync(config, "utf8")))));
    await writeSafetensors(join(from, "model.safetensors"), [["w", ones([2])]], {});
    const out = join(folder, `unknown ${name}-model`);
    await exportCommand([from, "--out", out]);
    expect(readdirSync(out).sort()).toEqual(["config.json", "model.safetensors"]);
  });

  it("lacks a head where its config names a model without one", async () => {
    const from = join(folder, "headless");
    const model = new Llama({ vocabulary: 256, context: 16, width: 16, heads: 2, layers: 1, tied: false });
    const base = model.stateDict().filter(([name]) => !name.startsWith("lm_head"));
    const save = (architecture: string) =>
      saveModel(from, base, { model_type: "llama", ...model.config, architectures: [architecture] });
    await save("LlamaModel");
    await exportCommand([from, "--out", join(folder, "headless-model")]);
    expect(readdirSync(join(folder, "headless-model")).sort()).toEqual(["config.json", "model.safetensors"]);
    await save("LlamaForCausalLM");
    await expect(exportCommand([from, "--out", join(folder, "no-head")])).rejects.toThrow("missing lm_head.weight");
  });

  it("takes the blobs of the cache of Hugging Face", async () => {
    const from = await foreign("hub");
    const snapshot = join(folder, "hub", "snapshots", "607a30d");
    mkdirSync(join(folder, "hub", "blobs"));
    mkdirSync(snapshot, { recursive: true });
    for (const [i, name] of ["config.json", "model.safetensors"].entries()) {
      renameSync(join(from, name), join(folder, "hub", "blobs", `${i}`));
      symlinkSync(`../../blobs/${i}`, join(snapshot, name));
    }
    const out = join(folder, "hub-model");
    await exportCommand([snapshot, "--out", out]);
    expect(readdirSync(out).sort()).toEqual(["config.json", "model.safetensors"]);
    expect((await loadModelOf(out)).parameterCount()).toBe((await loadModelOf(snapshot)).parameterCount());
  });
});
