import {
  Arena,
  autocast,
  fromTypedArray,
  manualSeed,
  memory,
  noGrad,
  randint,
  randn,
  scope,
  type Tensor,
  zeros,
} from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { needsModules, relativeError, runPython } from "../../../tensor/src/testing/python.ts";
import { Bert } from "../bert/bert.ts";
import { Gpt } from "../gpt/gpt.ts";
import { Gpt2 } from "../gpt2/gpt2.ts";
import type { Model } from "../model.ts";
import { models } from "../models.ts";
import { ResNet } from "../resnet/resnet.ts";
import { Vit } from "../vit/vit.ts";
import { Lora } from "./lora.ts";
import type { LoraOptions } from "./options.ts";
import { readPeftConfig } from "./peft-config.ts";

const options = (given: Partial<LoraOptions> = {}): LoraOptions => ({
  rank: 4,
  alpha: 8,
  rslora: false,
  dropout: 0,
  modulesToSave: [],
  ...given,
});

/** Python's dictionary of the base under the names that transformers saves, and of the adapter under PEFT's. */
function stateOf(model: Model, lora: Lora): Record<string, Tensor> {
  const base = lora.baseState().flatMap(([name, tensor]): [string, Tensor][] => {
    const names = model.storedAs?.(name) ?? [name];
    return names.map((stored, i) => {
      const rows = tensor.shape.length > 0 ? tensor.shape[0]! / names.length : 0;
      return [
        `base ${stored}`,
        names.length === 1
          ? tensor.detach().clone()
          : tensor
              .detach()
              .narrow(0, i * rows, rows)
              .clone(),
      ];
    });
  });
  return Object.fromEntries([
    ...base,
    ...lora.parameters().map(([name, p]): [string, Tensor] => [`lora ${name}`, p.detach().clone()]),
  ]);
}

/** B is not zero, so that its A has a gradient. */
const perturb = (lora: Lora) =>
  noGrad(() => {
    for (const [, parameter] of lora.parameters()) parameter.add_(randn(parameter.shape), { alpha: 0.1 });
  });

/** The base of transformers' `cls` with the adapter by peft, as `m`, both with our weights. */
const there = (cls: string, config: string, lora: string) => `
import transformers as t, os, tempfile, json
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
from safetensors.torch import save_file
base = {k[5:]: v for k, v in inputs.items() if k.startswith("base ")}
adapter = {k[5:]: v for k, v in inputs.items() if k.startswith("lora ")}
t.logging.disable_progress_bar(); t.logging.set_verbosity_error()
with tempfile.TemporaryDirectory() as d:
    t.${cls}(t.${config}).save_pretrained(d)
    save_file({k: v.contiguous() for k, v in base.items()}, d + "/model.safetensors", metadata={"format": "pt"})
    b, info = t.${cls}.from_pretrained(d, output_loading_info=True)
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
m = get_peft_model(b, LoraConfig(r=4, lora_alpha=8, ${lora}))
result = set_peft_model_state_dict(m, adapter)
assert not result.unexpected_keys, result
trained = {n.replace(".default", "").replace(".modules_to_save", "") for n, p in m.named_parameters() if p.requires_grad}
assert trained == set(adapter), (trained ^ set(adapter))
def gradients():
    for n, p in m.named_parameters():
        if p.requires_grad: outputs["g " + n.replace(".default", "").replace(".modules_to_save", "")] = p.grad.clone()
`;

const tokens = (rows: number, length: number): Tensor => randint(0, 61, [rows, length]);
const V = "vocab_size=61";
const bert = `MegatronBertConfig(${V}, max_position_embeddings=16, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, hidden_dropout_prob=0., attention_probs_dropout_prob=0.)`;

interface Case {
  create(): Model;
  batch(): Record<string, Tensor>;
  readonly python: string; // class and config
  readonly loss: string;
  readonly given: Partial<LoraOptions>;
  readonly peft: string;
}

const gpt2: Pick<Case, "create" | "batch" | "python" | "loss"> = {
  create: () => new Gpt2({ vocabulary: 61, context: 16, width: 16, heads: 2, layers: 2, dropout: 0 }),
  batch: () => ({ tokens: tokens(3, 16), next: tokens(3, 16) }),
  python: `GPT2LMHeadModel|GPT2Config(${V}, n_positions=16, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0., embd_pdrop=0., attn_pdrop=0., bos_token_id=None, eos_token_id=None)`,
  loss: `F.cross_entropy(m(inputs["tokens"]).logits.flatten(0, 1), inputs["next"].flatten())`,
};
const llama: Pick<Case, "create" | "batch" | "python" | "loss"> = {
  create: () =>
    models.llama.restore(
      models.llama.read({
        ...{ model_type: "llama", architectures: ["LlamaForCausalLM"], vocab_size: 61, hidden_size: 16 },
        ...{ num_attention_heads: 4, num_key_value_heads: 2, num_hidden_layers: 2, intermediate_size: 32 },
        ...{ max_position_embeddings: 16, tie_word_embeddings: false },
      }),
    ),
  batch: () => ({ tokens: tokens(3, 16), next: tokens(3, 16) }),
  python: `LlamaForCausalLM|LlamaConfig(${V}, hidden_size=16, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2, intermediate_size=32, max_position_embeddings=16, tie_word_embeddings=False)`,
  loss: gpt2.loss,
};
const vit: Pick<Case, "create" | "batch" | "python" | "loss"> = {
  create: () =>
    new Vit({ channels: 3, imageSize: 16, patchSize: 8, width: 16, heads: 2, layers: 2, classes: 5, eps: 1e-12 }),
  batch: () => ({ images: randn([4, 3, 16, 16]), labels: randint(0, 5, [4]) }),
  python: `ViTForImageClassification|ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=16, patch_size=8, num_labels=5)`,
  loss: `F.cross_entropy(m(inputs["images"]).logits, inputs["labels"])`,
};

const cases: Readonly<Record<string, Case>> = {
  "gpt2, c_attn": { ...gpt2, given: { targets: ["c_attn"] }, peft: `target_modules=["c_attn"]` },
  "gpt2, all-linear, rslora": {
    ...gpt2,
    given: { targets: "all-linear", rslora: true },
    peft: `target_modules="all-linear", use_rslora=True`,
  },
  "gpt2, layers by the ends of their names": {
    ...gpt2,
    given: { targets: ["mlp.c_proj", "h.1.attn.c_attn"] },
    peft: `target_modules=["mlp.c_proj", "h.1.attn.c_attn"]`,
  },
  "bert, query and value": {
    create: () => new Bert({ vocabulary: 61, context: 16, width: 16, heads: 2, layers: 2, hidden: 32, dropout: 0 }),
    batch: () => ({
      tokens: tokens(3, 16),
      segments: randint(0, 2, [3, 16]),
      mask: zeros([3, 16], { dtype: "i64" }).add(1),
      labels: tokens(3, 16),
      nextSentence: randint(0, 2, [3]),
    }),
    python: `MegatronBertForPreTraining|${bert}`,
    loss: `m(input_ids=inputs["tokens"], attention_mask=inputs["mask"], token_type_ids=inputs["segments"], labels=inputs["labels"], next_sentence_label=inputs["nextSentence"]).loss`,
    given: { targets: ["query", "value"] },
    peft: `target_modules=["query", "value"]`,
  },
  "vit, query and value, which are one matrix with key here": {
    ...vit,
    given: { targets: ["query", "value"] },
    peft: `target_modules=["q_proj", "v_proj"]`,
  },
  "vit, all-linear, with a head that is trained": {
    ...vit,
    given: { targets: "all-linear", modulesToSave: ["classifier"] },
    peft: `target_modules="all-linear", modules_to_save=["classifier"]`,
  },
  "llama, q_proj and v_proj": {
    ...llama,
    given: { targets: ["q_proj", "v_proj"] },
    peft: `target_modules=["q_proj", "v_proj"]`,
  },
  "llama, all-linear": { ...llama, given: { targets: "all-linear" }, peft: `target_modules="all-linear"` },
  "resnet, convolutions": {
    create: () => new ResNet({ depth: 18, width: 4, stem: "imagenet", channels: 3, classes: 5 }).eval() as Model,
    batch: () => ({ images: randn([4, 3, 32, 32]), labels: randint(0, 5, [4]) }),
    python: `ResNetForImageClassification|ResNetConfig(embedding_size=4, hidden_sizes=[4, 8, 16, 32], depths=[2, 2, 2, 2], layer_type="basic", num_labels=5)`,
    loss: `F.cross_entropy(m.eval()(inputs["images"]).logits, inputs["labels"])`,
    given: { targets: ["convolution"] },
    peft: `target_modules=["convolution"]`,
  },
};

const missing = needsModules("transformers", "peft");

describe.skipIf(missing !== "")(`LoRA beside peft${missing}`, () => {
  it.each(Object.keys(cases))("has its loss and its gradients: %s", (name) =>
    scope(async () => {
      const { create, batch: of, python, loss: lossThere, given, peft } = cases[name]!;
      manualSeed(1);
      const model = create();
      const lora = new Lora(model, options(given));
      perturb(lora);
      const batch = of();
      const [cls, config] = python.split("|") as [string, string];
      const found = await runPython(
        `${there(cls, config, peft)}
loss = ${lossThere}
loss.backward()
outputs["loss"] = loss
gradients()`,
        { ...batch, ...stateOf(model, lora) },
      );
      const loss = model.loss(batch);
      await loss.backward();
      expect(relativeError(loss, found["loss"]!)).toBeLessThan(1e-5);
      expect(Object.keys(found).length).toBe(1 + lora.parameters().length);
      for (const [file, parameter] of lora.parameters())
        expect(relativeError(parameter.grad!, found[`g ${file}`]!), file).toBeLessThan(1e-5);
      for (const [name, { grad }] of lora.frozenState() as [string, { grad: unknown }][]) expect(grad, name).toBeNull();
    }),
  );

  it("follows its trajectory of AdamW", () =>
    scope(async () => {
      const { create, batch: of, python, loss: lossThere, given, peft } = cases["gpt2, all-linear, rslora"]!;
      manualSeed(2);
      const model = create();
      const lora = new Lora(model, options(given));
      const batch = of();
      const [cls, config] = python.split("|") as [string, string];
      const found = await runPython(
        `${there(cls, config, peft)}
opt = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], lr=1e-2, weight_decay=0.1)
losses = []
for _ in range(6):
    loss = ${lossThere}
    losses.append(loss.item()); opt.zero_grad(); loss.backward(); opt.step()
outputs["losses"] = torch.tensor(losses, dtype=torch.float64)
for n, p in m.named_parameters():
    if p.requires_grad: outputs["p " + n.replace(".default", "")] = p`,
        { ...batch, ...stateOf(model, lora) },
      );
      const [lr, b1, b2, eps, decay] = [1e-2, 0.9, 0.999, 1e-8, 0.1];
      const losses: number[] = [];
      const state = lora.parameters().map(([, p]) => ({ p, m: zeros(p.shape), v: zeros(p.shape) }));
      for (let t = 1; t <= 6; t++) {
        const loss = model.loss(batch);
        losses.push(loss.item());
        await loss.backward();
        noGrad(() => {
          for (const { p, m, v } of state) {
            const g = p.grad!;
            p.mul_(1 - lr * decay);
            m.mul_(b1).add_(g, { alpha: 1 - b1 });
            v.mul_(b2).add_(g.square(), { alpha: 1 - b2 });
            p.sub_(
              m.div(1 - b1 ** t).div(
                v
                  .div(1 - b2 ** t)
                  .sqrt()
                  .add(eps),
              ),
              { alpha: lr },
            );
            p.grad = null;
          }
        });
      }
      expect(relativeError(fromTypedArray(Float64Array.from(losses)), found["losses"]!)).toBeLessThan(1e-5);
      for (const [file, parameter] of lora.parameters())
        expect(relativeError(parameter, found[`p ${file}`]!), file).toBeLessThan(2e-3); // Adam divides by √v ≈ 0 at first
    }));
});

describe("LoRA", () => {
  const small = () => new Gpt({ vocabulary: 31, context: 8, width: 16, heads: 2, layers: 2 });
  const batch = () => ({ tokens: randint(0, 31, [2, 8]), next: randint(0, 31, [2, 8]) });

  it("begins as its base, and merged computes the same without adapters", () =>
    scope(() => {
      for (const { create, batch: of, given } of Object.values(cases)) {
        manualSeed(3);
        const model = create().eval() as Model;
        const rows = of();
        const before = model.metrics(rows)["loss"]!.item();
        const lora = new Lora(model, options(given));
        expect(model.metrics(rows)["loss"]!.item()).toBeCloseTo(before, 5);
        perturb(lora);
        const adapted = model.metrics(rows)["loss"]!.item();
        expect(adapted).not.toBeCloseTo(before, 4);
        const names = lora.baseState().map(([name]) => name);
        lora.merge();
        expect(model.metrics(rows)["loss"]!.item()).toBeCloseTo(adapted, 4);
        expect(model.stateDict().map(([name]) => name)).toEqual(names);
      }
    }));

  it("merged leaves a model that trains as before: all weights in f32, with gradients and running statistics", () =>
    scope(async () => {
      for (const { create, batch: of, given } of Object.values(cases)) {
        manualSeed(3);
        const model = create().train() as Model;
        const lora = new Lora(model, options(given));
        lora.holdBaseInBf16();
        lora.merge();
        const before = model.namedBuffers().map(([, buffer]) => buffer.clone());
        await model.loss(of()).backward();
        for (const [name, { dtype, grad }] of model.namedParameters()) {
          expect(dtype, name).toBe("f32");
          expect(grad, name).not.toBeNull();
        }
        for (const [i, [name, buffer]] of model.namedBuffers().entries())
          expect(buffer.equal(before[i]!), name).toBe(false);
      }
    }));

  it("is all that an arena has, under PEFT's names in ours", () => {
    const model = small();
    new Lora(model, options({ rank: 2, targets: ["qkv"] }));
    expect(new Arena(model).segments.map(({ name, shape, role }) => `${name} ${shape} ${role}`)).toEqual([
      "blocks.0.attention.qkv.lora_A.weight 2,16 matrix",
      "blocks.0.attention.qkv.lora_B.weight 48,2 matrix",
      "blocks.1.attention.qkv.lora_A.weight 2,16 matrix",
      "blocks.1.attention.qkv.lora_B.weight 48,2 matrix",
    ]);
  });

  it("has A from the seed, whatever was drawn before, and B = 0", () => {
    const drawn = () => {
      randn([3]);
      return new Lora(small(), options({ targets: "all-linear" }), { seed: 5 }).parameters();
    };
    const [one, other] = [drawn(), drawn()];
    for (const [i, [name, parameter]] of one.entries()) {
      expect(parameter.equal(other[i]![1]), name).toBe(true);
      if (name.includes("lora_B")) expect(parameter.abs().max().item(), name).toBe(0);
      else expect(parameter.abs().max().item(), name).toBeLessThanOrEqual(1 / Math.sqrt(parameter.shape[1]!));
    }
  });

  it("drops what A reads in training alone", () =>
    scope(() => {
      const model = small();
      perturb(new Lora(model, options({ targets: "all-linear", dropout: 0.5 })));
      const rows = batch();
      const twice = () => [model.loss(rows).item(), model.loss(rows).item()];
      const [a, b] = twice();
      expect(a).not.toBe(b);
      model.eval();
      const [c, d] = twice();
      expect(c).toBe(d);
    }));

  it("leaves the running statistics of its base as they are", () =>
    scope(() => {
      const { create, batch: of, given } = cases["resnet, convolutions"]!;
      const model = create();
      new Lora(model, options(given));
      const before = model.namedBuffers().map(([, buffer]) => buffer.clone());
      model.train().loss(of());
      for (const [i, [name, buffer]] of model.namedBuffers().entries())
        expect(buffer.equal(before[i]!), name).toBe(true);
    }));

  it.each(["f32", "bf16"] as const)(
    "computes with a base in bf16, in %s, and keeps a gradient for adapters alone",
    (precision) =>
      scope(async () => {
        manualSeed(4);
        const model = small();
        const lora = new Lora(model, options({ targets: "all-linear" }));
        perturb(lora);
        const rows = batch();
        const exact = model.loss(rows).item();
        const before = memory().bytes;
        lora.holdBaseInBf16();
        const matrices = lora.frozenState().filter(([, { shape }]) => shape.length === 2);
        const halves = 2 * matrices.reduce((sum, [, { length }]) => sum + length, 0);
        expect(matrices.map(([name, { dtype }]) => `${name} ${dtype}`)).toEqual(
          matrices.map(([name]) => `${name} bf16`),
        );
        expect(before - memory().bytes).toBe(halves);
        for (const activationCheckpointing of [false, true]) {
          model.activationCheckpointing = activationCheckpointing;
          const pass = () => model.loss(rows);
          const loss = precision === "f32" ? pass() : autocast({ deviceType: "cpu" }, pass);
          await loss.backward();
          expect(Math.abs(loss.item() / exact - 1)).toBeLessThan(0.02);
          for (const [name, parameter] of lora.parameters()) {
            expect(parameter.grad!.dtype, name).toBe("f32");
            parameter.grad = null;
          }
        }
      }),
  );

  it("computes with a base in bf16, for each kind of layer, and keeps no weight in f32 until backward", () =>
    scope(async () => {
      for (const [name, { create, batch: of, given }] of Object.entries(cases)) {
        manualSeed(4);
        const model = create();
        const lora = new Lora(model, options(given));
        perturb(lora);
        const rows = of();
        const bytesOf = (body: () => unknown) => {
          const before = memory().bytes;
          body();
          return memory().bytes - before;
        };
        let exact = 0;
        const inF32 = bytesOf(() => {
          exact = model.loss(rows).item();
        });
        lora.holdBaseInBf16();
        let loss = model.loss(rows);
        const inBf16 = bytesOf(() => {
          loss = model.loss(rows);
        });
        expect(Math.abs(loss.item() / exact - 1), name).toBeLessThan(0.02);
        expect(inBf16, name).toBeLessThanOrEqual(inF32 + 16);
        await loss.backward();
        for (const [file, { grad }] of lora.parameters()) expect(grad?.abs().max().item(), file).toBeGreaterThan(0);
      }
    }));

  it.each([
    [
      ["c_atn"],
      /adapter\.targets: c_atn matches no layer; did you mean c_attn\? there is c_attn, c_proj, c_fc, and all-linear/,
    ],
    [["c_attn", "q_proj"], /adapter\.targets: q_proj matches no layer/],
    [[], /none is named/],
  ])("refuses targets that match nothing, %s", (targets, message) => {
    expect(() => new Lora(gpt2.create(), options({ targets }))).toThrow(message);
  });

  it("refuses a tied embedding as a module to save: PEFT trains a copy of it, and the head keeps the base's", () => {
    expect(() => new Lora(gpt2.create(), options({ modulesToSave: ["wte"] }))).toThrow(
      /adapter\.modulesToSave: transformer\.wte\.weight is the head of this model too/,
    );
  });

  it("reads of an adapter's words those that its file has tensors for", () => {
    const of = (given: object, ...names: string[]) =>
      readPeftConfig(
        { peft_type: "LORA", r: 2, lora_alpha: 2, target_modules: ["query", "c_attn"], ...given },
        ["layer.0.query.lora_A.weight", ...names].map((name) => `base_model.model.${name}`),
      );
    const sequences = of({ modules_to_save: ["classifier", "score"] }, "classifier.weight", "classifier.bias");
    expect(sequences).toMatchObject({ targets: ["query"], modulesToSave: ["classifier"] });
    // PEFT takes every module whose name ends in these letters.
    const norms = of({ modules_to_save: ["norm"] }, "norm.weight", "layer.0.input_norm.weight");
    expect(norms.modulesToSave).toEqual(["norm", "layer.0.input_norm"]);
  });

  it("refuses a module to save that is not there, and all-linear where the head is the only linear layer", () => {
    expect(() => new Lora(small(), options({ modulesToSave: ["score"] }))).toThrow(/adapter\.modulesToSave: score/);
    const { create } = cases["resnet, convolutions"]!;
    expect(() => new Lora(create(), options({ targets: "all-linear" }))).toThrow(
      /no linear layer but its head; .*convolution/,
    );
  });
});
