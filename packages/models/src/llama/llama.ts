/**
 * Llama and its relatives: RMSNorm before each part, rotary embeddings, grouped-query attention, SwiGLU.
 * Touvron et al. 2023, https://arxiv.org/abs/2302.13971; Ainslie et al. 2023 (grouped queries); Jiang et al. 2023
 * (Mistral's window), https://arxiv.org/abs/2310.06825. Qwen2 has biases of q, k and v, Qwen3 norms of q and k.
 * Names and layouts of parameters are those of transformers' LlamaForCausalLM, so its folders open here and ours there.
 *
 * Shapes: tokens (B, T)   x (B, T, d)   q (B, T, h, e)   k, v (B, T, g, e)   logits (B, T, V)
 */
import { parseOptions } from "@terse/options";
import {
  causalAttention,
  causalMask,
  Embedding,
  joinHeads,
  type KeyValueCache,
  Linear,
  linear,
  Module,
  ModuleList,
  noGrad,
  RMSNorm,
  type Rotation,
  rotate,
  scope,
  swiglu,
  type Tensor,
} from "@terse/tensor";
import type { HuggingFaceConfig } from "../hugging-face-config.ts";
import { initialise } from "../initialise.ts";
import { LanguageModel } from "../language-model.ts";
import { toDevice } from "../to-device.ts";
import { toConfig } from "./config.ts";
import { type LlamaOptions, type LlamaShape, llamaOptions } from "./options.ts";
import { ropeFrequencies } from "./rope-frequencies.ts";

/** The biases of the projections of attention, and whether q and k have norms. */
const attentionOf = ({ architecture, attentionBias }: LlamaShape) => ({
  inputBias: attentionBias || architecture === "qwen2",
  outputBias: attentionBias,
  normed: architecture === "qwen3",
});

class Attention extends Module {
  readonly qProj: Linear; // (h e, d)
  readonly kProj: Linear; // (g e, d)
  readonly vProj: Linear; // (g e, d)
  readonly oProj: Linear; // (d, h e)
  readonly qNorm: RMSNorm | undefined; // (e)
  readonly kNorm: RMSNorm | undefined; // (e)
  readonly e: number;
  readonly p: number;

  constructor(shape: LlamaShape) {
    super();
    const { width: d, heads: h, keyValueHeads: g, headWidth: e, eps, attentionDropout } = shape;
    const { inputBias, outputBias, normed } = attentionOf(shape);
    this.qProj = new Linear(d, h * e, { bias: inputBias });
    this.kProj = new Linear(d, g * e, { bias: inputBias });
    this.vProj = new Linear(d, g * e, { bias: inputBias });
    this.oProj = new Linear(h * e, d, { bias: outputBias });
    this.qNorm = normed ? new RMSNorm(e, { eps }) : undefined;
    this.kNorm = normed ? new RMSNorm(e, { eps }) : undefined;
    this.e = e;
    this.p = attentionDropout;
  }

  forward(x: Tensor, rotation: Rotation, cache?: KeyValueCache, mask?: Tensor): Tensor {
    const [batch, time] = x.shape as [number, number];
    const headsOf = (layer: Linear) => layer.forward(x).view(batch, time, -1, this.e);
    const placed = (y: Tensor, norm: RMSNorm | undefined) =>
      rotate(norm ? norm.forward(y) : y, rotation).transpose(1, 2);
    const [q, k] = [placed(headsOf(this.qProj), this.qNorm), placed(headsOf(this.kProj), this.kNorm)];
    const v = headsOf(this.vProj).transpose(1, 2);
    const y = causalAttention(q, k, v, { dropout: this.training ? this.p : 0, cache, mask });
    return this.oProj.forward(joinHeads(y));
  }
}

class Mlp extends Module {
  readonly gateProj: Linear; // (hidden, d)
  readonly upProj: Linear; // (hidden, d)
  readonly downProj: Linear; // (d, hidden)

  constructor({ width, hidden, mlpBias: bias }: LlamaShape) {
    super();
    this.gateProj = new Linear(width, hidden, { bias });
    this.upProj = new Linear(width, hidden, { bias });
    this.downProj = new Linear(hidden, width, { bias });
  }

  forward(x: Tensor): Tensor {
    return this.downProj.forward(swiglu(this.gateProj.forward(x), this.upProj.forward(x)));
  }
}

class Layer extends Module {
  readonly inputLayernorm: RMSNorm;
  readonly selfAttn: Attention;
  readonly postAttentionLayernorm: RMSNorm;
  readonly mlp: Mlp;

  constructor(shape: LlamaShape) {
    super();
    const { width, eps } = shape;
    this.inputLayernorm = new RMSNorm(width, { eps });
    this.selfAttn = new Attention(shape);
    this.postAttentionLayernorm = new RMSNorm(width, { eps });
    this.mlp = new Mlp(shape);
  }

  forward(x: Tensor, rotation: Rotation, cache?: KeyValueCache, mask?: Tensor): Tensor {
    x = x.add(this.selfAttn.forward(this.inputLayernorm.forward(x), rotation, cache, mask));
    return x.add(this.mlp.forward(this.postAttentionLayernorm.forward(x)));
  }
}

class Decoder extends Module {
  readonly embedTokens: Embedding; // (V, d); if tied, also the output head
  readonly layers: ModuleList<Layer>;
  readonly norm: RMSNorm;

  constructor(shape: LlamaShape) {
    super();
    const { vocabulary, width, layers, eps, padding } = shape;
    this.embedTokens = new Embedding(vocabulary, width, { paddingIdx: padding });
    this.layers = new ModuleList(Array.from({ length: layers }, () => new Layer(shape)));
    this.norm = new RMSNorm(width, { eps });
  }
}

/** Llama, Mistral, Qwen2 and Qwen3. tokens (B, T) → logits (B, T, V). Touvron et al. 2023. */
export class Llama extends LanguageModel {
  readonly model: Decoder;
  readonly lmHead: Linear | undefined; // (V, d); undefined if tied

  readonly shape: LlamaShape;
  readonly basePrefix = "model.";
  readonly unused = /(^|\.)rotary_emb\.inv_freq$/; // in older files

  constructor(options: LlamaOptions) {
    super();
    const shape = parseOptions(llamaOptions, options, "llama");
    this.shape = shape;
    this.model = new Decoder(shape);
    this.lmHead = shape.tied ? undefined : new Linear(shape.width, shape.vocabulary, { bias: false, role: "head" });
    initialise(this);
    const { padding } = shape;
    if (padding !== null) noGrad(() => scope(() => void this.model.embedTokens.weight.select(0, padding).zero_()));
  }

  forward(tokens: Tensor, caches?: readonly KeyValueCache[], packed?: Tensor): Tensor {
    const { embedTokens, layers, norm } = this.model;
    const { positions, mask } = this.placesOf(tokens, caches, packed);
    const { cos, sin } = this.rotationAt(positions);
    const near = this.windowMask(tokens.shape[1]!, caches?.[0]?.length ?? 0, mask);
    let x = embedTokens.forward(toDevice(this.device, tokens));
    for (const [i, layer] of layers.modules.entries()) {
      const seen = i < this.shape.fullLayers ? mask : near;
      x = this.throughBlock(
        (x, cos, sin, seen) => layer.forward(x!, { cos: cos!, sin: sin! }, caches?.[i], seen),
        caches,
        ...[x, cos, sin, seen],
      );
    }
    x = norm.forward(x);
    return this.lmHead?.forward(x) ?? linear(x, embedTokens.weight);
  }

  /** positions (T) or (B, T) → cosines and sines (…, T, 1, e/2) */
  private rotationAt(positions: Tensor): Rotation {
    const { frequencies, attentionFactor } = ropeFrequencies(this.shape, this.device);
    const angles = positions.to("f32").unsqueeze(-1).mul(frequencies).unsqueeze(-2);
    const scaled = (x: Tensor) => (attentionFactor === 1 ? x : x.mul(attentionFactor));
    return { cos: scaled(angles.cos()), sin: scaled(angles.sin()) };
  }

  /** `mask`, within the window too. Texts that are no longer than the window need no mask of their own. */
  private windowMask(time: number, past: number, mask: Tensor | undefined): Tensor | undefined {
    const { window } = this.shape;
    if (window === null || past + time <= window) return mask;
    const near = causalMask(past, time, { window, device: this.device });
    return mask ? mask.logicalAnd(near) : near;
  }

  get config(): HuggingFaceConfig {
    return toConfig(this.shape);
  }

  protected get device(): string {
    return this.model.norm.weight.device;
  }

  get copies(): Readonly<Record<string, string>> {
    return this.shape.tied ? { "lm_head.weight": "model.embed_tokens.weight" } : {};
  }
}
