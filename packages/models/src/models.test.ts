import { readFileSync } from "node:fs";
import { parseOptions, v } from "@terse/options";
import {
  arange,
  autocast,
  cat,
  manualSeed,
  memory,
  noGrad,
  ones,
  randint,
  randn,
  scope,
  type Tensor,
  zeros,
} from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { collectGarbage } from "../../tensor/src/testing/collect-garbage.ts";
import { Gpt } from "./gpt/gpt.ts";
import type { LanguageModel } from "./language-model.ts";
import { layersOf } from "./lora/find-targets.ts";
import { Lora } from "./lora/lora.ts";
import { loraOptions } from "./lora/options.ts";
import { continuesText } from "./model.ts";
import { countElements, type ModelName, models, restoreModel } from "./models.ts";

const gpt = (given: object, data = {}) => {
  const options = parseOptions(v.object(models.gpt.options.entries), given, "model");
  return models.gpt.create(options, data) as Gpt;
};

describe("models", () => {
  it("makes a gpt of its preset, and single options override that", () => {
    expect(gpt({ preset: "nano" }).shape).toMatchObject({ context: 64, width: 64, layers: 2 });
    expect(gpt({ preset: "nano", layers: 1, context: undefined }).shape).toMatchObject({ context: 64, layers: 1 });
  });

  it("takes the length of the data's rows for its context, unless the context is given", () => {
    expect(gpt({ preset: "nano" }, { length: 32 }).context).toBe(32);
    expect(gpt({ preset: "nano", context: 48 }, { length: 32 }).context).toBe(48);
  });

  it("refuses a vocabulary smaller than the data's", () => {
    expect(() => gpt({ preset: "nano", vocabulary: 100 }, { vocabulary: 256 })).toThrow(
      "model.vocabulary: the data has 256 tokens, the model only 100; choose 256 or more",
    );
  });

  it("makes a model anew from its config", () => {
    const { config } = gpt({ preset: "nano", layers: 1 });
    const model = restoreModel(JSON.parse(JSON.stringify({ model_type: "gpt", ...config })));
    expect(model).toBeInstanceOf(Gpt);
    expect(model.config).toEqual(config);
    expect(continuesText(model)).toBe(true);
  });

  it.each([
    [{ model_type: "gtp" }, /model_type: unknown name "gtp"; did you mean gpt\?/],
    [{}, /model_type: is missing, and tells the model: one of .*llama/],
    [{ model_type: null }, /model_type: is missing/],
    [{ model_type: "gpt", widht: 3 }, /did you mean width/],
  ])("says what is wrong with the config %o", (config, message) => {
    expect(() => restoreModel(config)).toThrow(message);
  });
});

manualSeed(2); // the same batches every time
const [B, T, V, K] = [4, 8, 20, 4]; // rows, tokens per row, vocabulary, classes
const text = { preset: "tiny", vocabulary: V, width: 16, heads: 2, layers: 1 };
const small: Record<ModelName, { options: object; labels: Tensor }> = {
  gpt: { options: { ...text, preset: "nano" }, labels: zeros([0]) },
  gpt2: { options: { ...text, preset: "gpt2" }, labels: zeros([0]) },
  llama: { options: { ...text, hidden: 32, keyValueHeads: 1, headWidth: 8, tied: false }, labels: zeros([0]) },
  bert: { options: { ...text, hidden: 32 }, labels: randint(0, V, [B, T]) },
  "bert-classifier": { options: { ...text, hidden: 32 }, labels: randint(0, K, [B]) },
  resnet: { options: { width: 4 }, labels: randint(0, K, [B]) },
  vit: { options: { patchSize: 4, width: 16, heads: 2, layers: 1 }, labels: randint(0, K, [B]) },
};
const facts = { vocabulary: V, length: T, classes: K, channels: 3, height: 8, width: 8 };

describe.each(Object.keys(models) as ModelName[])("%s, as every model,", (name) => {
  const entry = models[name];
  const create = (more: object = {}) => {
    manualSeed(1);
    const options = { ...small[name].options, ...more };
    return entry.create(parseOptions(v.object(entry.options.entries), options, "model"), facts);
  };
  const tensors: Readonly<Record<string, Tensor>> = {
    tokens: randint(0, V, [B, T]),
    next: randint(0, V, [B, T]),
    segments: randint(0, 2, [B, T]),
    mask: ones([B, T], { dtype: "i64" }),
    nextSentence: randint(0, 2, [B]),
    images: randn([B, 3, 8, 8]),
    labels: small[name].labels,
  };
  const batch = Object.fromEntries(entry.fields.map((field) => [field, tensors[field]!]));

  it("has a row in the package's README", () => {
    const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
    const row = `| \`${name}\``;
    expect(
      readme.split("\n").some((line) => line.startsWith(row)),
      `packages/models/README.md: ${row}: … | its presets |`,
    ).toBe(true);
  });

  it("has a loss that depends on all of its parameters, and names a unit for each of its metrics, the loss first", () =>
    scope(async () => {
      const model = create();
      const loss = model.loss(batch);
      expect(loss.shape).toEqual([]);
      await loss.backward();
      for (const [name, { grad }] of model.namedParameters()) expect(grad, name).not.toBeNull();
      const metrics = noGrad(() => model.eval().metrics(batch));
      expect(Object.keys(metrics)).toEqual(Object.keys(model.metricUnits("image")));
      expect(Object.keys(metrics)[0]).toBe("loss");
      for (const metric of Object.values(metrics)) expect(metric.shape).toEqual([]);
    }));

  it("computes with an adapter on each of its layers, whose gradient is not zero", () =>
    scope(async () => {
      const model = create();
      const targets = layersOf(model).map(({ name }) => name);
      const lora = new Lora(model, parseOptions(loraOptions, { rank: 2, targets }, "adapter"));
      const all = lora.parameters();
      expect(all.length).toBeGreaterThanOrEqual(2 * targets.length);
      noGrad(() => {
        for (const [, parameter] of all) parameter.add_(randn(parameter.shape), { alpha: 0.1 });
      });
      await model.loss(batch).backward();
      for (const [file, { grad }] of all) expect(grad?.abs().max().item(), file).toBeGreaterThan(0);
    }));

  if (entry.fields.includes("next"))
    it("sees each text of a packed row alone: logits and gradients are those of each by itself", () =>
      scope(async () => {
        const { tokens, next } = tensors as Record<"tokens" | "next", Tensor>;
        for (const checkpointed of [false, true]) {
          const model = create() as LanguageModel & { activationCheckpointing: boolean };
          model.activationCheckpointing = checkpointed;
          const [first, second] = [3, T - 3];
          const positions = cat([arange(first, { dtype: "i64" }), arange(second, { dtype: "i64" })]).unsqueeze(0);
          const packed = model.forward(tokens, undefined, positions.expand([B, T]));
          const alone = tokens.split([first, second], 1).map((text) => model.forward(text));
          expect(packed.allclose(cat(alone, 1), { rtol: 1e-5, atol: 1e-6 })).toBe(true);
          expect(packed.allclose(model.forward(tokens), { rtol: 1e-5, atol: 1e-6 })).toBe(false);
          await model.loss({ tokens, next, positions: positions.expand([B, T]) }).backward();
          const gradients = model.parameters().map(({ grad }) => grad!.clone());
          const apart = create() as LanguageModel;
          const [a, b] = [0, 1].map((i) =>
            apart.loss({ tokens: tokens.split([first, second], 1)[i]!, next: next.split([first, second], 1)[i]! }),
          );
          await a!
            .mul(first / T)
            .add(b!.mul(second / T))
            .backward();
          for (const [i, { grad }] of apart.parameters().entries())
            expect(gradients[i]!.allclose(grad!, { rtol: 1e-4, atol: 1e-6 }), apart.namedParameters()[i]![0]).toBe(
              true,
            );
        }
      }));

  it("frees what backward does not need when its loss is computed", async () => {
    await collectGarbage();
    scope(() => {
      const model = create();
      const before = memory().tensors;
      model.loss(batch);
      expect(memory().tensors).toBe(before + 1);
    });
  });

  it("is counted and made anew by its config, and has the same metrics with the same weights", () =>
    scope(() => {
      const model = create();
      noGrad(() => model.loss(batch)); // moves running statistics
      const state = new Map(model.stateDict());
      expect(countElements(entry, entry.read(model.config))).toBe(
        [...state.values()].reduce((sum, { length }) => sum + length, 0),
      );
      const again = entry.restore(entry.read(JSON.parse(JSON.stringify(model.config))));
      expect(again.stateDict().map(([name, { shape }]) => [name, shape])).toEqual(
        [...state].map(([name, { shape }]) => [name, shape]),
      );
      noGrad(() => {
        for (const [name, tensor] of again.stateDict()) tensor.copy_(state.get(name)!);
      });
      const [preset] = Object.keys(entry.presets);
      // Every option is read, so no preset shows.
      const byRecipe = entry.create({ preset, ...entry.read(model.config) }, {});
      expect(byRecipe.config).toEqual(model.config);
      for (const option of [...(entry.ofData ?? []), ...(entry.ofTraining ?? [])])
        expect(Object.keys(entry.options.entries)).toContain(option);
      const loss = ({ loss }: Readonly<Record<string, Tensor>>) => loss!.item();
      noGrad(() => expect(loss(again.eval().metrics(batch))).toBe(loss(model.eval().metrics(batch))));
    }));

  it.each(["f32", "bf16"] as const)("has the same gradients with activation checkpointing, in %s", (precision) =>
    scope(async () => {
      const { entries } = entry.options;
      const model = create({
        ...("layers" in entries && { layers: 2 }),
        ...("dropout" in entries && { dropout: 0.2 }),
      });
      if (model.activationCheckpointing === undefined) {
        expect(model.namedBuffers()).not.toEqual([]); // running statistics, which would move twice
        return;
      }
      const gradients: Tensor[][] = [];
      for (const on of [false, true]) {
        model.activationCheckpointing = on;
        manualSeed(5); // of dropout
        const forward = () => model.loss(batch);
        await (precision === "f32" ? forward() : autocast({ deviceType: "cpu" }, forward)).backward();
        gradients.push(model.parameters().map((p) => p.grad!.clone()));
        for (const p of model.parameters()) p.grad = null;
      }
      for (const [i, [parameter]] of model.namedParameters().entries())
        expect(gradients[1]![i]!.equal(gradients[0]![i]!), parameter).toBe(true);
    }),
  );

  it.each(["f32", "bf16"] as const)("learns a batch by heart, with the forward pass in %s", (precision) =>
    scope(async () => {
      const model = create();
      const forward = () => model.loss(batch);
      const losses: number[] = [];
      for (let step = 0; step < 25; step++) {
        const loss = precision === "f32" ? forward() : autocast({ deviceType: "cpu", dtype: precision }, forward);
        losses.push(loss.item());
        await loss.backward();
        noGrad(() => {
          for (const p of model.parameters()) {
            p.sub_(p.grad!.sign(), { alpha: 0.01 });
            p.grad = null;
          }
        });
      }
      expect(losses.at(-1)!).toBeLessThan(losses[0]! / 2);
      expect(model.parameters().every(({ dtype }) => dtype === "f32")).toBe(true);
    }),
  );
});
