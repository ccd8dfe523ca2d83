/** Weights that transformers saved, under all names that files have for them: both sides load the same from each. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { differingCopy, loadConfig, loadModel } from "@terse/checkpoint";
import { scope } from "@terse/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsModules, runPython } from "../../tensor/src/testing/python.ts";
import { type Model, restoreModel, withNewHead } from "./index.ts";

const bert =
  "vocab_size=61, max_position_embeddings=16, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32";
const vit =
  "hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=16, patch_size=8";

const llama =
  "vocab_size=61, max_position_embeddings=16, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=32, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None";

/**
 * transformers' class, its base class, what makes its config, and the names of a tied parameter's repetitions in files.
 */
const cases: Readonly<
  Record<string, readonly [base: string, config: string, tied?: readonly [copy: string, of: string]]>
> = {
  GPT2LMHeadModel: [
    "GPT2Model",
    "GPT2Config(vocab_size=61, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=None, eos_token_id=None)",
    ["lm_head.weight", "transformer.wte.weight"],
  ],
  LlamaForCausalLM: ["LlamaModel", `LlamaConfig(${llama})`, ["lm_head.weight", "model.embed_tokens.weight"]],
  MistralForCausalLM: ["MistralModel", `MistralConfig(${llama})`],
  Qwen2ForCausalLM: ["Qwen2Model", `Qwen2Config(${llama})`],
  Qwen3ForCausalLM: ["Qwen3Model", `Qwen3Config(${llama}, head_dim=8)`],
  MegatronBertForPreTraining: [
    "MegatronBertModel",
    `MegatronBertConfig(${bert})`,
    ["cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"],
  ],
  MegatronBertForSequenceClassification: ["MegatronBertModel", `MegatronBertConfig(${bert})`],
  ResNetForImageClassification: [
    "ResNetModel",
    `ResNetConfig(embedding_size=4, hidden_sizes=[4, 8, 16, 32], depths=[2, 2, 2, 2], layer_type="basic")`,
  ],
  ViTForImageClassification: ["ViTModel", `ViTConfig(${vit})`],
  DeiTForImageClassificationWithTeacher: ["DeiTModel", `DeiTConfig(${vit})`],
};

const missing = needsModules("transformers", "safetensors");
const folder = mkdtempSync(join(tmpdir(), "terse-others-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const wrapped = {
  DistributedDataParallel: "module.",
  "torch.compile": "_orig_mod.",
  both: "module._orig_mod.",
  dictionary: "state_dict.",
  attribute: "model.",
};

describe.skipIf(missing !== "")(`weights of others${missing}`, () => {
  beforeAll(async () => {
    const each = Object.entries(cases).map(
      ([name, [base, config, tied]]) =>
        `save("${name}", "${base}", t.${config}, ${tied ? JSON.stringify(tied) : "None"})`,
    );
    await runPython(`
import transformers as t
from safetensors.torch import save_file
t.logging.disable_progress_bar(); t.logging.set_verbosity_error()
def save(name, base, config, tied):
    torch.manual_seed(1)
    model = getattr(t, name)(config)
    with torch.no_grad():
        for p in model.parameters(): p.add_(0.1 * torch.randn_like(p))
    root = f"${folder}/{name}"
    model.save_pretrained(f"{root}/saved")
    getattr(model, model.base_model_prefix).save_pretrained(f"{root}/base")
    assert type(getattr(model, model.base_model_prefix)).__name__ == base
    model.save_pretrained(f"{root}/shards", max_shard_size="4KB")
    state = {k: v.clone() for k, v in model.state_dict().items()}
    def put(folder, tensors):
        model.config.save_pretrained(f"{root}/{folder}")
        save_file(tensors, f"{root}/{folder}/model.safetensors", metadata={"format": "pt"})
        loaded = getattr(t, name).from_pretrained(f"{root}/{folder}").state_dict() # what is right
        save_file({k: v.clone() for k, v in loaded.items()}, f"{root}/{folder}/right.safetensors")
    for kind, prefix in ${JSON.stringify(wrapped)}.items():
        model.config.save_pretrained(f"{root}/{kind}")
        save_file({prefix + k: v for k, v in state.items()}, f"{root}/{kind}/model.safetensors")
    # What the wrappers themselves write.
    wrap = torch.compile(torch.nn.DataParallel(model))
    model.config.save_pretrained(f"{root}/wrapped")
    save_file({k: v.clone() for k, v in wrap.state_dict().items()}, f"{root}/wrapped/model.safetensors")
    if tied:
        copy, first = tied
        put("twice", state)
        put("copy", {k: v for k, v in state.items() if k != first})
        put("differs", {**state, copy: state[copy] + 1})
${each.join("\n")}`);
  });

  const open = async (name: string, kind: string): Promise<Model> =>
    restoreModel(await loadConfig(join(folder, name, kind)));
  const load = async (name: string, kind: string, model?: Model): Promise<Model> => {
    const target = model ?? (await open(name, kind));
    await loadModel(join(folder, name, kind), target.stateDict(), target);
    return target;
  };
  const expectSame = (model: Model, other: Model) => {
    const tensors = new Map(other.stateDict());
    for (const [name, tensor] of model.stateDict()) expect(tensor.equal(tensors.get(name)!), name).toBe(true);
  };

  it.each(Object.keys(cases))("of %s are the same in shards and behind the names of wrappers", (name) =>
    scope(async () => {
      const saved = await load(name, "saved");
      expect(readdirSync(join(folder, name, "shards"))).toContain("model.safetensors.index.json");
      for (const kind of ["shards", "wrapped", ...Object.keys(wrapped)]) expectSame(await load(name, kind), saved);
    }),
  );

  it.each(Object.keys(cases))("of the base model of %s are taken, and a head of its own stays new", (name) =>
    scope(async () => {
      const saved = await load(name, "saved");
      const model = await open(name, "saved");
      const path = join(folder, name, "base");
      const { headNames } = model;
      if (headNames === undefined) {
        await loadModel(path, model.stateDict(), model);
        return expectSame(model, saved);
      }
      const before = new Map(model.stateDict().map(([each, tensor]) => [each, tensor.clone()]));
      await expect(loadModel(path, model.stateDict(), model)).rejects.toThrow(
        /does not fit this model: missing [^;]*\. /,
      );
      await loadModel(path, model.stateDict(), withNewHead(model));
      const right = new Map(saved.stateDict());
      for (const [each, tensor] of model.stateDict())
        expect(tensor.equal((headNames.test(each) ? before : right).get(each)!), each).toBe(true);
    }),
  );

  const tied = Object.keys(cases).filter((name) => cases[name]![2]);

  it.each(tied)(
    "of %s with the tied tensor twice, or under its other name alone, are what transformers loads",
    (name) =>
      scope(async () => {
        const saved = await load(name, "saved");
        for (const kind of ["twice", "copy"]) {
          expectSame(await load(name, kind), saved);
          const path = join(folder, name, kind);
          expect(await differingCopy(path, saved.stateDict(), saved)).toBeUndefined();
        }
      }),
  );

  it.each(tied)("of %s whose copy differs are refused, and it is named", (name) =>
    scope(async () => {
      const [copy] = cases[name]![2]!;
      const model = await open(name, "differs");
      const path = join(folder, name, "differs");
      await expect(load(name, "differs")).rejects.toThrow(`${copy} and `);
      expect(await differingCopy(path, model.stateDict(), model)).toBe(copy);
    }),
  );

  it("whose copy differs are, untied, those that transformers loads", () =>
    scope(async () => {
      const config = await loadConfig(join(folder, "GPT2LMHeadModel", "differs"));
      const model = await load("GPT2LMHeadModel", "differs", restoreModel({ ...config, tie_word_embeddings: false }));
      const { readSafetensors } = await import("@terse/checkpoint");
      const right = await readSafetensors(join(folder, "GPT2LMHeadModel", "differs", "right.safetensors"));
      for (const [name, tensor] of model.stateDict())
        expect(await tensor.toTypedArray(), name).toEqual(right.get(name)!.data);
    }));
});
