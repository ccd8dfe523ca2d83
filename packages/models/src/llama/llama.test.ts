import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, loadModel, saveModel } from "@terse/checkpoint";
import { fromTypedArray, manualSeed, noGrad, randn, scope, type Tensor, withDevice } from "@terse/tensor";
import { afterAll, describe, expect, it } from "vitest";
import { needsModules, relativeError, runPython } from "../../../tensor/src/testing/python.ts";
import { generate } from "../generate/generate.ts";
import { modelsFor, restoreModel } from "../models.ts";
import { namesAndShapes, namesAndShapesThere } from "../testing/names-and-shapes.ts";
import { Llama } from "./llama.ts";
import { llamaPresets } from "./presets.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-llama-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const tolerance = 1e-5;
const ids = (rows: number, length: number, seed: number, vocabulary = 97): Tensor =>
  fromTypedArray(
    BigInt64Array.from({ length: rows * length }, (_, i) => BigInt((i * 2654435761 + seed * 40503) % vocabulary)),
    [rows, length],
  );

const small =
  "vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=64, bos_token_id=None, eos_token_id=None";

/** Saves a small model of transformers with random weights into `name`. */
const saved = (name: string, [family, config]: readonly [string, string], save = "") => `
import transformers
transformers.logging.disable_progress_bar(); transformers.logging.set_verbosity_error()
torch.manual_seed(3)
config = transformers.${family}Config(${small}, ${config})
model = transformers.${family}ForCausalLM(config)
with torch.no_grad():
    for p in model.parameters(): p.add_(0.1 * torch.randn_like(p))
model.save_pretrained(${JSON.stringify(join(folder, name))}${save})
`;

async function load(name: string): Promise<Llama> {
  const model = restoreModel(await loadConfig(join(folder, name))) as Llama;
  await loadModel(join(folder, name), model.namedParameters(), model);
  return model;
}

const rope = (type: string, more = "") => `rope_parameters=dict(rope_type="${type}", rope_theta=1000.0${more})`;

/** transformers' family, and options of its config besides the small sizes. */
const cases: Readonly<Record<string, readonly [family: string, config: string]>> = {
  llama: ["Llama", "num_key_value_heads=4"],
  "llama with grouped queries": ["Llama", "num_key_value_heads=2, tie_word_embeddings=True"],
  "llama with one head of keys": ["Llama", "num_key_value_heads=1, rms_norm_eps=0.01"],
  "llama with biases and wide heads": ["Llama", "attention_bias=True, mlp_bias=True, head_dim=16"],
  "llama with padding": ["Llama", "pad_token_id=5, tie_word_embeddings=True"],
  "llama, rope default": ["Llama", rope("default")],
  "llama, rope linear": ["Llama", rope("linear", ", factor=4.0")],
  "llama, rope dynamic": ["Llama", rope("dynamic", ", factor=4.0")],
  "llama, rope llama3": [
    "Llama",
    rope("llama3", ", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32"),
  ],
  "llama, rope yarn": ["Llama", rope("yarn", ", factor=4.0, original_max_position_embeddings=16")],
  "llama, rope yarn with all its options": [
    "Llama",
    rope(
      "yarn",
      ", factor=8.0, original_max_position_embeddings=16, beta_fast=8.0, beta_slow=0.5, truncate=False, mscale=0.7, mscale_all_dim=1.1",
    ),
  ],
  "llama, rope yarn with its factor of attention": [
    "Llama",
    rope("yarn", ", factor=4.0, original_max_position_embeddings=32, attention_factor=1.3"),
  ],
  mistral: ["Mistral", "num_key_value_heads=2, sliding_window=None, head_dim=8"],
  "mistral with a window": ["Mistral", "num_key_value_heads=2, sliding_window=7"],
  qwen2: ["Qwen2", "num_key_value_heads=2, tie_word_embeddings=True"],
  "qwen2 with a window": [
    "Qwen2",
    "num_key_value_heads=2, use_sliding_window=True, sliding_window=5, max_window_layers=1",
  ],
  qwen3: ["Qwen3", "num_key_value_heads=2, head_dim=16, tie_word_embeddings=True"],
  "qwen3 with biases and a window": [
    "Qwen3",
    "num_key_value_heads=4, head_dim=8, attention_bias=True, use_sliding_window=True, sliding_window=9, max_window_layers=2",
  ],
};

const missing = needsModules("transformers", "safetensors");

describe.skipIf(missing !== "")(`llama beside transformers${missing}`, () => {
  it.each(Object.entries(cases))(
    "gives logits, loss and gradients for the folder that it saved, and saves it for transformers: %s",
    async (name, [family, config]) => {
      const [tokens, next] = [ids(3, 40, 1), ids(3, 40, 2)];
      const expected = await runPython(
        `${saved(name, [family, config])}
outputs["logits"] = model(inputs["tokens"]).logits
loss = F.cross_entropy(outputs["logits"].flatten(0, 1), inputs["next"].flatten())
loss.backward()
outputs["loss"] = loss
for name, p in model.named_parameters(): outputs[name] = p.grad`,
        { tokens, next },
      );
      const model = await load(name);
      expect(modelsFor(await loadConfig(join(folder, name)))).toEqual(["llama"]);
      expect(relativeError(model.forward(tokens), expected["logits"]!)).toBeLessThan(tolerance);
      const loss = model.loss({ tokens, next });
      await loss.backward();
      expect(relativeError(loss, expected["loss"]!)).toBeLessThan(tolerance);
      const { logits: _, loss: __, ...gradients } = expected;
      expect(
        model
          .namedParameters()
          .map(([each]) => each)
          .sort(),
      ).toEqual(Object.keys(gradients).sort());
      for (const [each, parameter] of model.namedParameters())
        expect(relativeError(parameter.grad!, gradients[each]!), each).toBeLessThan(tolerance);

      const ours = join(folder, `${name}-ours`);
      await saveModel(ours, model.namedParameters(), model.config);
      const { again } = await runPython(
        `
import transformers
before, after = (transformers.AutoConfig.from_pretrained(folder).to_dict() for folder in ${JSON.stringify([join(folder, name), ours])})
def counts(config):
    rope = {k: v for k, v in config["rope_parameters"].items() if k not in ("mscale", "mscale_all_dim")}
    return {**config, "rope_parameters": {**defaults, **rope}, **dict.fromkeys(("dtype", "transformers_version", "_name_or_path"))}
defaults = {} if before["rope_parameters"]["rope_type"] != "yarn" else {
  k: after["rope_parameters"][k] for k in ("beta_fast", "beta_slow", "truncate", "attention_factor")}
assert counts(before) == counts(after), (before, after)
model, info = transformers.AutoModelForCausalLM.from_pretrained(${JSON.stringify(ours)}, output_loading_info=True)
assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
assert type(model).__name__ == "${family}ForCausalLM"
outputs["again"] = model.eval()(inputs["tokens"]).logits`,
        { tokens },
      );
      expect(relativeError(again!, expected["logits"]!)).toBeLessThan(tolerance);
    },
  );

  it.each(["llama with grouped queries", "mistral with a window", "qwen2 with a window", "qwen3"])(
    "writes the tokens of its greedy generate with a cache, with and without one here: %s",
    async (name) => {
      const prompt = [5, 17, 3];
      const { written, logits } = await runPython(`${saved(`greedy ${name}`, cases[name]!)}
written = model.generate(torch.tensor([${JSON.stringify(prompt)}]), do_sample=False, max_new_tokens=30, pad_token_id=0, use_cache=True)
outputs["written"] = written[0]
cache = transformers.DynamicCache(config=model.config)
for part in written.split([20, 1, 9, 3], 1):
    answer = model(part, past_key_values=cache, use_cache=True)
    outputs["logits"] = answer.logits[0, -1]`);
      const model = await load(`greedy ${name}`);
      const options = { length: 30, temperature: 0, random: () => 0 };
      const expected = Array.from((await written!.toTypedArray()) as BigInt64Array, Number);
      expect([...prompt, ...(await generate(model, prompt, options))]).toEqual(expected);
      expect([...prompt, ...(await generate(model, prompt, { ...options, cached: false }))]).toEqual(expected);
      expect(new Set(expected).size).toBeGreaterThan(3);

      scope(() =>
        noGrad(() => {
          const caches = model.eval().createCaches();
          let last: Tensor;
          for (const part of written!.unsqueeze(0).split([20, 1, 9, 3], 1)) last = model.nextLogits(part, caches);
          expect(relativeError(last!, logits!)).toBeLessThan(tolerance);
          for (const cache of caches) cache.dispose();
        }),
      );
    },
  );

  it("opens shards, half precision, the names of the base model, and the frequencies in older files", async () => {
    const tokens = ids(2, 30, 4);
    const at = (name: string) => JSON.stringify(join(folder, name));
    const expected = await runPython(
      `${saved("shards", cases["llama with grouped queries"]!, ', max_shard_size="30KB"')}
from safetensors.torch import save_file
outputs["logits"] = model(inputs["tokens"]).logits
import os
os.makedirs(${at("older")}); config.save_pretrained(${at("older")})
state = {k: v.clone() for k, v in model.state_dict().items()}
state["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(6)
save_file(state, ${at("older")} + "/model.safetensors")
for name, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
    model.to(dtype).save_pretrained(${at("half-")} + name)
    model.float()
    outputs[name] = transformers.AutoModelForCausalLM.from_pretrained(${at("half-")} + name, dtype=torch.float32)(inputs["tokens"]).logits
    model = transformers.AutoModelForCausalLM.from_pretrained(${at("shards")})
model.model.save_pretrained(${at("body")})`,
      { tokens },
    );
    for (const [name, of] of [
      ["shards", "logits"],
      ["older", "logits"],
      ["half-bf16", "bf16"],
      ["half-f16", "f16"],
    ] as const)
      expect(relativeError((await load(name)).forward(tokens), expected[of]!), name).toBeLessThan(tolerance);
    const model = restoreModel(await loadConfig(join(folder, "shards"))) as Llama;
    await loadModel(join(folder, "body"), model.namedParameters(), model);
    expect(relativeError(model.forward(tokens), expected["logits"]!)).toBeLessThan(tolerance);
  });

  it.each(Object.keys(llamaPresets) as (keyof typeof llamaPresets)[])(
    "has its names and shapes at full size: %s",
    async (preset) => {
      const model = withDevice("meta", () => new Llama(llamaPresets[preset]));
      const config = JSON.stringify(JSON.stringify(model.config));
      model.dispose();
      expect(namesAndShapes(() => new Llama(llamaPresets[preset]))).toEqual(
        await namesAndShapesThere(
          `import transformers, json; c = json.loads(${config}); m = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**c))`,
        ),
      );
    },
  );
});

describe("llama", () => {
  it.each([
    ["smollm-135m", 134_515_008],
    ["smollm-360m", 361_821_120],
    ["smollm-1.7b", 1_711_376_384],
    ["tinyllama-1.1b", 1_100_048_384],
    ["llama-2-7b", 6_738_415_616],
    ["llama-3.1-8b", 8_030_261_248],
    ["llama-3.2-1b", 1_235_814_400],
    ["llama-3.2-3b", 3_212_749_824],
    ["mistral-7b", 7_241_732_096],
    ["qwen2.5-0.5b", 494_032_768],
    ["qwen2.5-1.5b", 1_543_714_304],
    ["qwen3-0.6b", 596_049_920],
  ] as const)("has the published number of parameters: %s, %i", (preset, count) => {
    const model = withDevice("meta", () => new Llama(llamaPresets[preset]));
    expect(model.parameterCount()).toBe(count);
    model.dispose();
  });

  it("has a role for every parameter", () => {
    const model = new Llama({ ...llamaPresets.tiny, architecture: "qwen3", attentionBias: true });
    expect(Object.fromEntries(model.namedParameters().map(([name, { role }]) => [name, role]))).toMatchObject({
      "model.embed_tokens.weight": "embedding",
      "model.layers.0.self_attn.q_proj.weight": "matrix",
      "model.layers.0.self_attn.q_proj.bias": "vector",
      "model.layers.0.self_attn.q_norm.weight": "norm",
      "model.layers.0.input_layernorm.weight": "norm",
      "model.layers.1.mlp.down_proj.weight": "matrix",
      "model.norm.weight": "norm",
      "lm_head.weight": "head",
    });
  });

  it("sees no further than its window in packed rows too", () => {
    manualSeed(1);
    const shape = { ...llamaPresets.tiny, architecture: "mistral" as const, window: 3 };
    const model = new Llama(shape);
    noGrad(() => {
      for (const parameter of model.parameters())
        if (parameter.role === "matrix") parameter.add_(randn(parameter.shape), { alpha: 0.2 });
    });
    const tokens = ids(1, 12, 1, 256);
    const positions = fromTypedArray(
      BigInt64Array.from({ length: 12 }, (_, i) => BigInt(i < 5 ? i : i - 5)),
      [1, 12],
    );
    scope(() =>
      noGrad(() => {
        const packed = model.forward(tokens, undefined, positions);
        const [first, second] = tokens.split([5, 7], 1) as [Tensor, Tensor];
        expect(packed.narrow(1, 0, 5).allclose(model.forward(first), { rtol: 1e-4, atol: 1e-5 })).toBe(true);
        expect(packed.narrow(1, 5, 7).allclose(model.forward(second), { rtol: 1e-4, atol: 1e-5 })).toBe(true);
        const all = new Llama({ ...shape, window: null });
        all.loadStateDict(model.stateDict());
        expect(all.forward(second).allclose(model.forward(second), { rtol: 1e-4, atol: 1e-5 })).toBe(false);
      }),
    );
  });

  const published = { model_type: "llama", hidden_size: 64, num_attention_heads: 4, num_key_value_heads: 2 };
  it("reads rope_theta and rope_scaling of older files, and rope_parameters of newer ones", () => {
    const shapeOf = (given: object) => {
      const { ropeTheta, ropeScaling } = (restoreModel({ ...published, num_hidden_layers: 1, ...given }) as Llama)
        .shape;
      return { ropeTheta, ropeScaling };
    };
    expect(shapeOf({ rope_theta: 5e5, rope_scaling: { type: "linear", factor: 2 } })).toEqual({
      ropeTheta: 5e5,
      ropeScaling: { name: "linear", factor: 2 },
    });
    expect(shapeOf({ rope_parameters: { rope_type: "linear", factor: 2, rope_theta: 7 }, rope_theta: 5 })).toEqual({
      ropeTheta: 7,
      ropeScaling: { name: "linear", factor: 2 },
    });
    expect(shapeOf({})).toEqual({ ropeTheta: 10000, ropeScaling: { name: "default" } });
  });

  it.each([
    [{ hidden_act: "gelu" }, /^hidden_act: is "gelu", and only "silu" or "swish" is known here/],
    [{ rope_scaling: { rope_type: "longrope", factor: 2 } }, /^rope_scaling\.rope_type: is "longrope"/],
    [{ rope_parameters: { rope_type: "linear" } }, /^rope_parameters\.factor: /],
    [{ rope_scaling: { type: "linear", factor: 0.5 } }, /^rope_scaling\.factor: .*0\.5/],
    [{ rope_scaling: "linear" }, /^rope_scaling: .*"linear"/],
    [{ rope_scaling: { rope_type: "llama3", factor: 8, low_freq_factor: "1" } }, /^rope_scaling\.low_freq_factor: /],
    [{ partial_rotary_factor: 0.5 }, /^partial_rotary_factor: is 0\.5/],
    [{ rope_theta: -1 }, /^rope_theta: .*-1/],
    [{ num_key_value_heads: 3 }, /^num_key_value_heads: 3 does not divide heads, 4/],
    [{ head_dim: 15 }, /^head_dim: 15 is odd/],
    [{ pad_token_id: 32000 }, /^pad_token_id: is 32000/],
    [{ quantization_config: { bits: 4 } }, /^quantization_config: /],
    [{ num_hidden_layers: 0 }, /^num_hidden_layers: .*0/],
    [{ attention_bias: "yes" }, /^attention_bias: .*"yes"/],
    [{ architectures: ["LlamaForSequenceClassification"] }, /^architectures: .*LlamaForCausalLM.*not \["LlamaForSeq/],
    [{ model_type: "mistral", architectures: ["MistralForCausalLM"], sliding_window: 0 }, /^sliding_window: .*0/],
    [
      {
        model_type: "qwen2",
        architectures: ["Qwen2ForCausalLM"],
        num_hidden_layers: 2,
        layer_types: ["sliding_attention", "full_attention"],
        use_sliding_window: true,
      },
      /^layer_types: only full_attention in the first layers/,
    ],
    [
      {
        model_type: "mistral",
        architectures: ["MistralForCausalLM"],
        num_hidden_layers: 2,
        layer_types: ["sliding_attention", "full_attention"],
      },
      /^layer_types: of mistral only layers of one type/,
    ],
    [{ is_causal: false }, /^is_causal: is false/],
    [{ per_layer_config: { 1: { intermediate_size: 8 } } }, /^per_layer_config: is /],
    [
      { model_type: "granite", architectures: ["LlamaForCausalLM"] },
      /^model_type: is "granite", and \["LlamaForCausalLM"\] are classes of llama, mistral/,
    ],
  ])("refuses a config that means another model, by its key: %o", (config, message) => {
    expect(() => restoreModel({ ...published, ...config })).toThrow(message);
  });

  it.each([
    ["sliding_attention", 100],
    ["full_attention", null],
  ])("reads layer_types of Mistral, all of them %s", (type, window) => {
    const own = { model_type: "mistral", architectures: ["MistralForCausalLM"], sliding_window: 100 };
    const config = { ...published, ...own, num_hidden_layers: 2, layer_types: [type, type] };
    expect((restoreModel(config) as Llama).shape.window).toBe(window);
  });

  it("takes a padding that is counted from the end", () => {
    const model = restoreModel({ ...published, num_hidden_layers: 1, vocab_size: 50, pad_token_id: -1 }) as Llama;
    expect(model.shape.padding).toBe(49);
  });
});
