import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, loadModel, saveModel } from "@terse/checkpoint";
import { fromTypedArray, manualSeed, noGrad, scope, type Tensor, withDevice } from "@terse/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsModules, relativeError, runPython } from "../../../tensor/src/testing/python.ts";
import { generate } from "../generate/generate.ts";
import { restoreModel } from "../models.ts";
import { namesAndShapes, namesAndShapesThere } from "../testing/names-and-shapes.ts";
import { Gpt2 } from "./gpt2.ts";
import { gpt2Presets } from "./options.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-gpt2-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const tolerance = 1e-5;
const ids = (rows: number, length: number, seed: number, vocabulary = 97): Tensor =>
  fromTypedArray(
    BigInt64Array.from({ length: rows * length }, (_, i) => BigInt((i * 2654435761 + seed * 40503) % vocabulary)),
    [rows, length],
  );

/**
 * Saves a small GPT2LMHeadModel with random weights into `name`; `config` and `save` add options of its config and of
 * save_pretrained.
 */
const saved = (name: string, { config = "", save = "" } = {}) => `
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(3)
model = GPT2LMHeadModel(GPT2Config(vocab_size=97, n_positions=24, n_embd=48, n_layer=3, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None, eos_token_id=None${config}))
with torch.no_grad():
    for p in model.parameters(): p.add_(0.1 * torch.randn_like(p))
model.save_pretrained(${JSON.stringify(join(folder, name))}${save})
`;

async function load(name: string): Promise<Gpt2> {
  const model = restoreModel(await loadConfig(join(folder, name))) as Gpt2;
  await loadModel(join(folder, name), model.namedParameters(), model);
  return model;
}

const missing = needsModules("transformers", "safetensors");

describe.skipIf(missing !== "")(`gpt2 beside transformers' GPT2LMHeadModel${missing}`, () => {
  beforeAll(async () => {
    // Takes a moment.
    await runPython("from transformers import GPT2LMHeadModel, logging; logging.disable_progress_bar()");
  });

  it.each([
    { tied: true, config: "" },
    { tied: false, config: ", tie_word_embeddings=False" },
  ])("gives its logits, loss and gradients for the folder that it saved, tied: $tied", async ({ tied, config }) => {
    const name = `saved-${tied}`;
    const [tokens, next] = [ids(3, 20, 1), ids(3, 20, 2)];
    const expected = await runPython(
      `${saved(name, { config })}
outputs["logits"] = model(inputs["tokens"]).logits
loss = F.cross_entropy(model(inputs["tokens"]).logits.flatten(0, 1), inputs["next"].flatten())
loss.backward()
outputs["loss"] = loss
for name, p in model.named_parameters(): outputs[name] = p.grad`,
      { tokens, next },
    );
    const model = await load(name);
    expect(model.shape.tied).toBe(tied);
    expect(relativeError(model.forward(tokens), expected["logits"]!)).toBeLessThan(tolerance);
    const loss = model.loss({ tokens, next });
    await loss.backward();
    expect(relativeError(loss, expected["loss"]!)).toBeLessThan(tolerance);
    const { logits: _, loss: __, ...gradients } = expected;
    expect(model.namedParameters().map(([each]) => each)).toEqual(expect.arrayContaining(Object.keys(gradients)));
    expect(model.namedParameters().length).toBe(Object.keys(gradients).length);
    for (const [each, parameter] of model.namedParameters())
      expect(relativeError(parameter.grad!, gradients[each]!), each).toBeLessThan(tolerance);
  });

  it.each([
    ["gpt2", 768, 12, 12],
    ["gpt2-medium", 1024, 24, 16],
    ["gpt2-large", 1280, 36, 20],
    ["gpt2-xl", 1600, 48, 25],
  ] as const)("has its names and shapes at full size: %s", async (preset, width, layers, heads) => {
    for (const tied of [true, false]) {
      const options = `n_embd=${width}, n_layer=${layers}, n_head=${heads}, tie_word_embeddings=${tied ? "True" : "False"}`;
      expect(namesAndShapes(() => new Gpt2({ ...gpt2Presets[preset], tied }))).toEqual(
        await namesAndShapesThere(
          `import transformers; m = transformers.GPT2LMHeadModel(transformers.GPT2Config(${options}))`,
        ),
      );
    }
  });

  it("opens shards, half precision, and the names of GPT2Model", async () => {
    const tokens = ids(2, 16, 4);
    const expected = await runPython(
      `${saved("shards", { save: ', max_shard_size="60KB"' })}
outputs["logits"] = model(inputs["tokens"]).logits
model.transformer.save_pretrained(${JSON.stringify(join(folder, "body"))})
model.bfloat16().save_pretrained(${JSON.stringify(join(folder, "bf16"))})
outputs["bf16"] = model.float()(inputs["tokens"]).logits`,
      { tokens },
    );
    expect(existsSync(join(folder, "shards", "model.safetensors.index.json"))).toBe(true);
    for (const [name, logits] of [
      ["shards", "logits"],
      ["body", "logits"],
      ["bf16", "bf16"],
    ] as const)
      expect(relativeError((await load(name)).forward(tokens), expected[logits]!), name).toBeLessThan(tolerance);
  });

  it("opens in transformers with the same logits, as one file and as shards", async () => {
    manualSeed(5);
    const model = new Gpt2({
      vocabulary: 97,
      context: 24,
      width: 48,
      heads: 4,
      layers: 2,
      dropout: 0.1,
      embeddingDropout: 0.2,
      attentionDropout: 0.3,
    });
    const tokens = ids(2, 16, 6);
    await saveModel(join(folder, "ours"), model.namedParameters(), model.config);
    await saveModel(join(folder, "ours-sharded"), model.namedParameters(), model.config, { shardBytes: 50_000 });
    expect(existsSync(join(folder, "ours-sharded", "model.safetensors"))).toBe(false);
    const found = await runPython(
      `
from transformers import AutoModelForCausalLM
for name in "ours", "ours-sharded":
    model, info = AutoModelForCausalLM.from_pretrained(${JSON.stringify(`${folder}/`)} + name, output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    assert (model.config.resid_pdrop, model.config.embd_pdrop, model.config.attn_pdrop) == (0.1, 0.2, 0.3)
    outputs[name] = model.eval()(inputs["tokens"]).logits`,
      { tokens },
    );
    const logits = model.eval().forward(tokens);
    for (const name of ["ours", "ours-sharded"])
      expect(relativeError(logits, found[name]!), name).toBeLessThan(tolerance);
  });

  it("writes the tokens of its greedy generate", async () => {
    const prompt = [5, 17, 3];
    const { written } = await runPython(`${saved("greedy")}
outputs["written"] = model.generate(torch.tensor([${JSON.stringify(prompt)}]), do_sample=False, max_new_tokens=20, pad_token_id=0)[0]`);
    const options = { length: 20, temperature: 0, random: () => 0 };
    const mine = await generate(await load("greedy"), prompt, options);
    expect([...prompt, ...mine]).toEqual(Array.from((await written!.toTypedArray()) as BigInt64Array, Number));
    expect(new Set(mine).size).toBeGreaterThan(3);
  });
});

describe("gpt2", () => {
  it.each([
    ["gpt2", 124_439_808],
    ["gpt2-medium", 354_823_168],
    ["gpt2-large", 774_030_080],
    ["gpt2-xl", 1_557_611_200],
  ] as const)("has the published number of parameters: %s, %i", (preset, count) => {
    const model = withDevice("meta", () => new Gpt2(gpt2Presets[preset])); // shapes without memory
    expect(model.parameterCount()).toBe(count);
    model.dispose();
  });

  it("has a role for every parameter", () => {
    const model = new Gpt2({ ...gpt2Presets.tiny, layers: 1, tied: false });
    expect(Object.fromEntries(model.namedParameters().map(([name, { role }]) => [name, role]))).toMatchObject({
      "transformer.wte.weight": "embedding",
      "transformer.wpe.weight": "embedding",
      "transformer.h.0.ln_1.weight": "norm",
      "transformer.h.0.attn.c_attn.weight": "matrix",
      "transformer.h.0.attn.c_attn.bias": "vector",
      "transformer.ln_f.bias": "norm",
      "lm_head.weight": "head",
    });
  });

  it("reads the three dropouts of a config, 0.1 where it has none, and drops what they say", () => {
    const config = { model_type: "gpt2", n_embd: 32, n_head: 2, n_layer: 1, n_positions: 16, vocab_size: 97 };
    const dropouts = (given: object) => {
      const { dropout, embeddingDropout, attentionDropout } = (restoreModel({ ...config, ...given }) as Gpt2).shape;
      return [dropout, embeddingDropout, attentionDropout];
    };
    expect(dropouts({})).toEqual([0.1, 0.1, 0.1]);
    expect(dropouts({ resid_pdrop: 0.2, embd_pdrop: 0.3, attn_pdrop: 0 })).toEqual([0.2, 0.3, 0]);
    const none = { resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0 };
    const tokens = ids(1, 16, 1);
    scope(() =>
      noGrad(() => {
        for (const [key, same] of [...Object.keys(none).map((key) => [key, false] as const), ["", true] as const]) {
          const model = restoreModel({ ...config, ...none, ...(key && { [key]: 0.5 }) }) as Gpt2;
          expect(model.forward(tokens).equal(model.forward(tokens)), key).toBe(same);
        }
      }),
    );
  });

  it("drops nothing in evaluation, and something in training", () => {
    const model = new Gpt2({ vocabulary: 97, context: 16, width: 32, heads: 2, layers: 1, dropout: 0.5 });
    const tokens = ids(1, 16, 1);
    scope(() =>
      noGrad(() => {
        expect(model.forward(tokens).equal(model.forward(tokens))).toBe(false);
        model.eval();
        expect(model.forward(tokens).equal(model.forward(tokens))).toBe(true);
      }),
    );
  });

  it.each([
    [
      { activation_function: "relu" },
      /activation_function: is "relu", and only "gelu_new" or "gelu_pytorch_tanh" is known here/,
    ],
    [{ n_inner: 100 }, /n_inner: is 100/],
    [{ scale_attn_by_inverse_layer_idx: true }, /scale_attn_by_inverse_layer_idx: is true/],
    [{ n_layer: 0 }, /^n_layer: .*0/],
    [{ n_head: -1 }, /^n_head: .*-1/],
    [{ n_embd: Number.POSITIVE_INFINITY }, /^n_embd: .*Infinity/],
    [{ n_positions: "64" }, /^n_positions: .*"64"/],
    [{ tie_word_embeddings: 1 }, /^tie_word_embeddings: /],
    [{ quantization_config: { bits: 4 } }, /quantization_config: is \{"bits":4\}, and only null is known here/],
    [{ n_embd: 50, n_head: 3 }, /^n_head: 3 does not divide width, 50$/],
  ])("refuses a config that means another model: %o", (config, message) => {
    expect(() => restoreModel({ model_type: "gpt2", ...config })).toThrow(message);
  });

  it("refuses a text longer than its context", () => {
    const model = new Gpt2({ vocabulary: 97, context: 8, width: 32, heads: 2, layers: 1 });
    expect(() => model.forward(ids(1, 9, 0))).toThrow(/9 tokens do not fit its context of 8/);
  });

  it("opens the files of the published weights: no prefix, the masks of attention, a tied head twice", async () => {
    const shape = { vocabulary: 97, context: 8, width: 16, heads: 2, layers: 1 };
    const [model, other] = [new Gpt2(shape), new Gpt2(shape)];
    const mask = { dtype: "f32", shape: [1, 1, 8, 8], data: new Float32Array(64) } as const;
    const stored = model.namedParameters().map(([name, p]) => [name.replace("transformer.", ""), p] as const);
    const more = [
      ["h.0.attn.bias", mask],
      ["h.0.attn.masked_bias", { ...mask, shape: [], data: Float32Array.of(-1e4) }],
      ["lm_head.weight", model.transformer.wte.weight],
    ] as const;
    const path = join(folder, "published");
    await saveModel(path, [...stored, ...more], { ...model.config, n_ctx: 8, task_specific_params: {} });
    expect((restoreModel(await loadConfig(path)) as Gpt2).shape).toMatchObject(model.shape);
    await loadModel(path, other.namedParameters(), other);
    for (const [i, parameter] of other.parameters().entries())
      expect(parameter.equal(model.parameters()[i]!)).toBe(true);
    await expect(loadModel(path, new Gpt2({ ...shape, layers: 2 }).namedParameters(), other)).rejects.toThrow(
      /missing transformer\.h\.1\.ln_1\.weight/,
    );
  });

  it("names what differs in the weights of another architecture, the first four of each kind", async () => {
    const shape = { vocabulary: 97, context: 24, width: 48, heads: 4, layers: 2 };
    const model = new Gpt2({ ...shape, layers: 1, width: 32 });
    const path = join(folder, "other");
    await saveModel(path, new Gpt2(shape).namedParameters(), {});
    expect(readFileSync(join(path, "config.json"), "utf8")).toBe("{}\n");
    const error: Error = await loadModel(path, model.namedParameters(), model).catch((each) => each);
    expect(error.message).not.toContain("\n");
    expect(error.message).toMatch(
      /does not fit this model: unexpected transformer\.h\.1\.attn\.c_attn\.bias, .*, and 8 more; transformer\.wte\.weight is .*; and 12 more/,
    );
    expect(error.message.match(/transformer\./g)!.length).toBe(8);
  });
});
