import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, loadModel, saveModel } from "@terse/checkpoint";
import { fromTypedArray, manualSeed, noGrad, scope, type Tensor, withDevice } from "@terse/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsModules, relativeError, runPython } from "../../../tensor/src/testing/python.ts";
import type { Model } from "../model.ts";
import { models, restoreModel } from "../models.ts";
import { withNewHead } from "../new-head.ts";
import { namesAndShapes, namesAndShapesThere } from "../testing/names-and-shapes.ts";
import { Bert } from "./bert.ts";
import { BertClassifier } from "./bert-classifier.ts";
import { bertPresets } from "./options.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-bert-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const tolerance = 1e-5;
const [rows, T, vocabulary] = [3, 14, 61];
const integers = (shape: number[], value: (i: number) => number): Tensor =>
  fromTypedArray(
    BigInt64Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => BigInt(value(i))),
    shape,
  );

/** Not 0, which is padding for transformers. */
const tokenAt = (i: number) => 1 + ((i * 2654435761) % (vocabulary - 1));

/** Rows of 14, 11 and 8 tokens, of which every fifth is to be predicted. */
function example() {
  const isToken = (i: number) => i % T < T - 3 * Math.floor(i / T);
  const tokens = integers([rows, T], (i) => (isToken(i) ? tokenAt(i) : 0));
  const mask = integers([rows, T], (i) => Number(isToken(i)));
  const segments = integers([rows, T], (i) => Number(i % T > 5));
  const labels = integers([rows, T], (i) => (i % 5 === 2 && i % T < 8 ? (i * 40503) % vocabulary : -100));
  return { tokens, mask, segments, labels, nextSentence: integers([rows], (i) => i % 2) };
}
const shape = { vocabulary, context: 16, width: 48, heads: 4, layers: 3, hidden: 96 };

/** Saves a small model whose every weight is random. */
const saved = (architecture: string, more = "") => `
import transformers
torch.manual_seed(3)
model = transformers.${architecture}(transformers.MegatronBertConfig(vocab_size=61, max_position_embeddings=16, hidden_size=48, num_hidden_layers=3,
  num_attention_heads=4, intermediate_size=96, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0${more}))
with torch.no_grad():
    for p in model.parameters(): p.add_(0.1 * torch.randn_like(p))
model.save_pretrained(${JSON.stringify(join(folder, architecture))})
read = dict(input_ids=inputs["tokens"], attention_mask=inputs["mask"], token_type_ids=inputs["segments"])
`;

async function load(path: string): Promise<Model> {
  const model = restoreModel(await loadConfig(path));
  await loadModel(path, model.namedParameters(), model);
  return model;
}

/** Compares loss and all gradients with those of Python, by name. */
async function compare(model: Model, batch: object, { loss, ...gradients }: Record<string, Tensor>): Promise<void> {
  const mine = model.loss(batch);
  await mine.backward();
  expect(relativeError(mine, loss!)).toBeLessThan(tolerance);
  expect(model.namedParameters().map(([name]) => name)).toEqual(expect.arrayContaining(Object.keys(gradients)));
  expect(model.namedParameters().length).toBe(Object.keys(gradients).length);
  for (const [name, parameter] of model.namedParameters())
    if (name.endsWith(".key.bias")) {
      // It adds the same to all scores of a query, so its gradient is 0 but for rounding.
      const size = gradients[name.replace(".key.", ".query.")]!.norm().item();
      expect(parameter.grad!.norm().item() / size, name).toBeLessThan(tolerance);
    } else expect(relativeError(parameter.grad!, gradients[name]!), name).toBeLessThan(tolerance);
}

const missing = needsModules("transformers", "safetensors");

describe.skipIf(missing !== "")(`bert beside transformers' MegatronBert, its BERT with PreLN${missing}`, () => {
  beforeAll(async () => {
    // Takes a moment.
    await runPython("from transformers import MegatronBertForPreTraining, logging; logging.disable_progress_bar()");
  });

  it("gives the logits, loss and gradients of pre-training for the folder that it saved", async () => {
    const batch = example();
    const { tokens, next, ...rest } = await runPython(
      `${saved("MegatronBertForPreTraining")}
found = model(**read, labels=inputs["labels"], next_sentence_label=inputs["nextSentence"])
found.loss.backward()
outputs.update(tokens=found.prediction_logits, next=found.seq_relationship_logits, loss=found.loss)
for name, p in model.named_parameters(): outputs[name] = p.grad`,
      batch,
    );
    const model = (await load(join(folder, "MegatronBertForPreTraining"))) as Bert;
    const logits = model.forward(batch);
    expect(relativeError(logits.tokens, tokens!)).toBeLessThan(tolerance);
    expect(relativeError(logits.nextSentence, next!)).toBeLessThan(tolerance);
    await compare(model, batch, rest);
  });

  it.each([
    ["base", 768, 12, 12],
    ["large", 1024, 24, 16],
  ] as const)("has its names and shapes at full size: %s", async (preset, width, layers, heads) => {
    const options = `vocab_size=30522, max_position_embeddings=512, hidden_size=${width}, num_hidden_layers=${layers}, num_attention_heads=${heads}, intermediate_size=${4 * width}, num_labels=3`;
    const there = (architecture: string) =>
      namesAndShapesThere(
        `import transformers; m = transformers.${architecture}(transformers.MegatronBertConfig(${options}))`,
      );
    expect(namesAndShapes(() => new Bert(bertPresets[preset]))).toEqual(await there("MegatronBertForPreTraining"));
    expect(namesAndShapes(() => new BertClassifier({ ...bertPresets[preset], classes: 3 }))).toEqual(
      await there("MegatronBertForSequenceClassification"),
    );
  });

  it("gives those of a classifier, and takes the encoder of pre-training when a new one is asked for", async () => {
    const { nextSentence: _, ...rest } = example();
    const batch = { ...rest, labels: integers([rows], (i) => i) };
    const { logits, pooled, ...expected } = await runPython(
      `${saved("MegatronBertForPreTraining")}
outputs["pooled"] = model.bert(**read).pooler_output
${saved("MegatronBertForSequenceClassification", ", num_labels=3")}
found = model(**read, labels=inputs["labels"])
found.loss.backward()
outputs.update(logits=found.logits, loss=found.loss)
for name, p in model.named_parameters(): outputs[name] = p.grad`,
      batch,
    );
    const model = (await load(join(folder, "MegatronBertForSequenceClassification"))) as BertClassifier;
    expect(model.classes).toBe(3);
    expect(relativeError(model.forward(batch), logits!)).toBeLessThan(tolerance);
    await compare(model, batch, expected);

    const before = await model.classifier.weight.toTypedArray();
    const pretrained = join(folder, "MegatronBertForPreTraining");
    await expect(loadModel(pretrained, model.namedParameters(), model)).rejects.toThrow(/missing classifier\.weight/);
    await loadModel(pretrained, model.namedParameters(), withNewHead(model));
    expect(relativeError(model.bert.forward(batch).pooled, pooled!)).toBeLessThan(tolerance);
    expect(await model.classifier.weight.toTypedArray()).toEqual(before);
  });

  it("opens in transformers with the same logits", async () => {
    manualSeed(5);
    const batch = example();
    const [bert, classifier] = [new Bert(shape), new BertClassifier({ ...shape, classes: 4 })];
    await saveModel(join(folder, "bert"), bert.namedParameters(), bert.config);
    await saveModel(join(folder, "classifier"), classifier.namedParameters(), classifier.config);
    const found = await runPython(
      `
import transformers
read = dict(input_ids=inputs["tokens"], attention_mask=inputs["mask"], token_type_ids=inputs["segments"])
for name, kind in ("bert", "AutoModelForPreTraining"), ("classifier", "AutoModelForSequenceClassification"):
    model, info = getattr(transformers, kind).from_pretrained(${JSON.stringify(`${folder}/`)} + name, output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    outputs[name] = model.eval()(**read)[0]`,
      { tokens: batch.tokens, mask: batch.mask, segments: batch.segments },
    );
    expect(relativeError(bert.forward(batch).tokens, found["bert"]!)).toBeLessThan(tolerance);
    expect(relativeError(classifier.forward(batch), found["classifier"]!)).toBeLessThan(tolerance);
    expect(((await load(join(folder, "classifier"))) as BertClassifier).classes).toBe(4);
  });
});

describe("bert", () => {
  // BertForPreTraining's counts with the published vocabulary. PreLN has one norm less at the embeddings, and one more
  // at the end.
  it.each([
    ["base", 110_106_428],
    ["large", 336_226_108],
  ] as const)("has the published number of parameters: %s, %i", (preset, count) => {
    const model = withDevice("meta", () => new Bert(bertPresets[preset])); // shapes without memory
    expect(model.parameterCount()).toBe(count);
    model.dispose();
  });

  it("has a role for every parameter", () => {
    const roles = Object.fromEntries(new Bert(shape).namedParameters().map(([name, { role }]) => [name, role]));
    expect(roles).toMatchObject({
      "bert.embeddings.word_embeddings.weight": "embedding",
      "bert.embeddings.token_type_embeddings.weight": "embedding",
      "bert.encoder.layer.0.attention.ln.weight": "norm",
      "bert.encoder.layer.2.attention.self.query.weight": "matrix",
      "bert.encoder.layer.2.output.dense.bias": "vector",
      "cls.predictions.bias": "vector",
      "cls.predictions.transform.LayerNorm.weight": "norm",
      "cls.seq_relationship.weight": "head",
    });
  });

  it("does not attend to padding", () => {
    manualSeed(2);
    const [model, batch] = [new Bert(shape), example()];
    const other = integers([rows, T], (i) => (i % T < 8 ? tokenAt(i) : 7));
    const mask = integers([rows, T], (i) => Number(i % T < 8));
    scope(() =>
      noGrad(() => {
        const [a, b] = [batch.tokens, other].map((tokens) => model.forward({ ...batch, tokens, mask }));
        expect(relativeError(a!.nextSentence, b!.nextSentence)).toBeLessThan(1e-6);
        expect(relativeError(a!.tokens.narrow(1, 0, 8), b!.tokens.narrow(1, 0, 8))).toBeLessThan(1e-6);
      }),
    );
  });

  it("has a loss of zero for a head without labels", () => {
    const [model, batch] = [new Bert(shape), example()];
    const none = integers([rows, T], () => -100);
    scope(() =>
      noGrad(() => {
        const { masked, next_accuracy } = model.metrics({ ...batch, labels: none });
        expect(masked.item()).toBe(0);
        expect([0, 1 / 3, 2 / 3, 1].some((each) => Math.abs(each - next_accuracy.item()) < 1e-6)).toBe(true);
      }),
    );
  });

  it("takes the number of classes from the data, and refuses fewer", () => {
    const { create } = models["bert-classifier"];
    const given = { preset: "tiny", layers: 1, vocabulary: 99 };
    expect((create(given, { classes: 5 }) as BertClassifier).classes).toBe(5);
    expect((create({ ...given, classes: 3 }, {}) as BertClassifier).classes).toBe(3);
    expect(() => create({ ...given, classes: 3 }, { classes: 5 })).toThrow(/model\.classes: the data has 5 classes/);
    expect(() => create(given, {})).toThrow(/model\.classes: the data has no classes/);
  });

  it("refuses other kinds of BERT, and rows longer than its context", () => {
    const config = new Bert(shape).config;
    expect(() => restoreModel({ ...config, architectures: ["MegatronBertForCausalLM"] })).toThrow(
      /architectures: of megatron-bert only MegatronBertForPreTraining, MegatronBertForSequenceClassification is known here/,
    );
    expect(() => restoreModel({ model_type: "bert", architectures: ["BertForPreTraining"] })).toThrow(
      /architectures: of bert only MegatronBertForPreTraining is known here/,
    );
    expect(() => restoreModel({ ...config, hidden_act: "relu" })).toThrow(/hidden_act: is "relu"/);
    const long = integers([1, 17], () => 1);
    expect(() => new Bert(shape).forward({ tokens: long, segments: long, mask: long })).toThrow(
      /17 tokens do not fit its context of 16/,
    );
  });
});
