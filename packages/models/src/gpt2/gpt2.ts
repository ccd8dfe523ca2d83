/**
 * GPT-2 as published: LayerNorm before each part, GELU, biases. Radford et al. 2019, §2.3. Names and layouts of
 * parameters are those of transformers' GPT2LMHeadModel, so its folders open here and ours open there.
 *
 * Shapes: tokens (B, T)   x (B, T, d)   logits (B, T, V)
 */
import { parseOptions } from "@terse/options";
import {
  causalAttention,
  dropout,
  Embedding,
  joinHeads,
  type KeyValueCache,
  LayerNorm,
  Linear,
  linear,
  Module,
  ModuleList,
  splitHeads,
  type Tensor,
} from "@terse/tensor";
import type { HuggingFaceConfig } from "../hugging-face-config.ts";
import { LanguageModel } from "../language-model.ts";
import { toDevice } from "../to-device.ts";
import { toConfig } from "./config.ts";
import { Conv1D } from "./conv-1d.ts";
import { type Gpt2Options, type Gpt2Shape, gpt2Options } from "./options.ts";

class Attention extends Module {
  readonly cAttn: Conv1D; // the columns of q, then k, then v: (d, 3d)
  readonly cProj: Conv1D; // (d, d)
  readonly heads: number;
  readonly p: number;

  constructor({ width, heads, dropout, attentionDropout }: Gpt2Shape) {
    super();
    this.cAttn = new Conv1D(width, 3 * width);
    this.cProj = new Conv1D(width, width);
    this.heads = heads;
    this.p = attentionDropout ?? dropout;
  }

  forward(x: Tensor, cache?: KeyValueCache, mask?: Tensor): Tensor {
    const [q, k, v] = splitHeads(this.cAttn.forward(x), this.heads);
    const y = causalAttention(q, k, v, { dropout: this.training ? this.p : 0, cache, mask });
    return this.cProj.forward(joinHeads(y));
  }
}

class Mlp extends Module {
  readonly cFc: Conv1D; // (d, 4d)
  readonly cProj: Conv1D; // (4d, d)

  constructor({ width }: Gpt2Shape) {
    super();
    this.cFc = new Conv1D(width, 4 * width);
    this.cProj = new Conv1D(4 * width, width);
  }

  forward(x: Tensor): Tensor {
    return this.cProj.forward(this.cFc.forward(x).gelu({ approximate: "tanh" }));
  }
}

class Block extends Module {
  readonly ln_1: LayerNorm;
  readonly attn: Attention;
  readonly ln_2: LayerNorm;
  readonly mlp: Mlp;
  readonly p: number;

  constructor(shape: Gpt2Shape) {
    super();
    const { width, eps } = shape;
    this.ln_1 = new LayerNorm(width, { eps });
    this.attn = new Attention(shape);
    this.ln_2 = new LayerNorm(width, { eps });
    this.mlp = new Mlp(shape);
    this.p = shape.dropout;
  }

  forward(x: Tensor, cache?: KeyValueCache, mask?: Tensor): Tensor {
    x = x.add(dropout(this.attn.forward(this.ln_1.forward(x), cache, mask), this.p, this.training));
    return x.add(dropout(this.mlp.forward(this.ln_2.forward(x)), this.p, this.training));
  }
}

class Transformer extends Module {
  readonly wte: Embedding; // (V, d); if tied, also the output head
  readonly wpe: Embedding; // (context, d)
  readonly h: ModuleList<Block>;
  readonly lnF: LayerNorm;

  constructor(shape: Gpt2Shape) {
    super();
    this.wte = new Embedding(shape.vocabulary, shape.width);
    this.wpe = new Embedding(shape.context, shape.width);
    this.h = new ModuleList(Array.from({ length: shape.layers }, () => new Block(shape)));
    this.lnF = new LayerNorm(shape.width, { eps: shape.eps });
  }
}

/** GPT-2 as published. tokens (B, T) → logits (B, T, V). Radford et al. 2019, §2.3. */
export class Gpt2 extends LanguageModel {
  readonly transformer: Transformer;
  readonly lmHead: Linear | undefined; // (V, d); undefined if tied

  readonly shape: Gpt2Shape;
  readonly basePrefix = "transformer.";
  readonly unused = /\.attn\.(masked_)?bias$/; // the masks of attention, in older files

  constructor(options: Gpt2Options) {
    super();
    const shape = parseOptions(gpt2Options, options, "gpt2");
    this.shape = shape;
    this.transformer = new Transformer(shape);
    this.lmHead = shape.tied ? undefined : new Linear(shape.width, shape.vocabulary, { bias: false, role: "head" });
    this.initialiseAsGpt2((name) => name.endsWith("c_proj.weight"));
  }

  forward(tokens: Tensor, caches?: readonly KeyValueCache[], packed?: Tensor): Tensor {
    const { wte, wpe, h, lnF } = this.transformer;
    const { positions, mask } = this.placesOf(tokens, caches, packed);
    let x = wte.forward(toDevice(this.device, tokens)).add(wpe.forward(positions));
    x = dropout(x, this.shape.embeddingDropout ?? this.shape.dropout, this.training);
    for (const [i, block] of h.modules.entries())
      x = this.throughBlock((x, mask) => block.forward(x!, caches?.[i], mask), caches, x, mask);
    x = lnF.forward(x);
    return this.lmHead?.forward(x) ?? linear(x, wte.weight);
  }

  get config(): HuggingFaceConfig {
    return toConfig(this.shape);
  }

  protected get device(): string {
    return this.transformer.wpe.weight.device;
  }

  get copies(): Readonly<Record<string, string>> {
    return this.shape.tied ? { "lm_head.weight": "transformer.wte.weight" } : {};
  }
}
