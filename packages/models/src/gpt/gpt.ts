/**
 * GPT in the form of the Lion papers: GPT-2 with RMSNorm and SwiGLU, no biases.
 * Radford et al. 2019; Zhang and Sennrich 2019 (RMSNorm); Shazeer 2020 (SwiGLU); Ishikawa et al. 2024, §7 and D.1.
 *
 * Shapes: tokens (B, T)   x (B, T, d)   logits (B, T, V)
 */
import { parseOptions } from "@terse/options";
import {
  CausalSelfAttention,
  dropout,
  Embedding,
  type KeyValueCache,
  Linear,
  linear,
  Module,
  ModuleList,
  RMSNorm,
  swiglu,
  type Tensor,
} from "@terse/tensor";
import { LanguageModel } from "../language-model.ts";
import { toDevice } from "../to-device.ts";
import { type GptOptions, type GptShape, gptOptions } from "./options.ts";

const eps = 1e-5; // of the norms

/** 8/3 d, as many parameters as a 4 d MLP without a gate. */
const hiddenOf = (d: number) => Math.ceil((8 * d) / 3 / 64) * 64;

class SwiGlu extends Module {
  readonly gate: Linear;
  readonly up: Linear;
  readonly down: Linear;

  constructor(d: number) {
    super();
    const hidden = hiddenOf(d);
    this.gate = new Linear(d, hidden, { bias: false });
    this.up = new Linear(d, hidden, { bias: false });
    this.down = new Linear(hidden, d, { bias: false });
  }

  forward(x: Tensor): Tensor {
    return this.down.forward(swiglu(this.gate.forward(x), this.up.forward(x)));
  }
}

class Block extends Module {
  readonly attentionNorm: RMSNorm;
  readonly attention: CausalSelfAttention;
  readonly mlpNorm: RMSNorm;
  readonly mlp: SwiGlu;
  readonly p: number;

  constructor({ width, heads, dropout }: GptShape) {
    super();
    this.attentionNorm = new RMSNorm(width, { eps });
    this.attention = new CausalSelfAttention(width, heads, { dropout });
    this.mlpNorm = new RMSNorm(width, { eps });
    this.mlp = new SwiGlu(width);
    this.p = dropout;
  }

  forward(x: Tensor, cache?: KeyValueCache, mask?: Tensor): Tensor {
    x = x.add(dropout(this.attention.forward(this.attentionNorm.forward(x), cache, mask), this.p, this.training));
    return x.add(dropout(this.mlp.forward(this.mlpNorm.forward(x)), this.p, this.training));
  }
}

/** GPT in the form of the Lion papers. tokens (B, T) → logits (B, T, V). Ishikawa et al. 2024, §7 and D.1. */
export class Gpt extends LanguageModel {
  readonly embedding: Embedding; // (V, d); if tied, also the output head
  readonly position: Embedding; // (T, d)
  readonly blocks: ModuleList<Block>;
  readonly norm: RMSNorm;
  readonly head: Linear | undefined; // (V, d); undefined if tied

  readonly shape: GptShape;

  constructor(options: GptOptions) {
    super();
    const shape = parseOptions(gptOptions, options, "gpt");
    this.shape = shape;
    this.embedding = new Embedding(shape.vocabulary, shape.width);
    this.position = new Embedding(shape.context, shape.width);
    this.blocks = new ModuleList(Array.from({ length: shape.layers }, () => new Block(shape)));
    this.norm = new RMSNorm(shape.width, { eps });
    this.head = shape.tied ? undefined : new Linear(shape.width, shape.vocabulary, { bias: false, role: "head" });
    this.initialiseAsGpt2((name) => /(attention\.out|mlp\.down)\.weight$/.test(name));
  }

  forward(tokens: Tensor, caches?: readonly KeyValueCache[], packed?: Tensor): Tensor {
    const { positions, mask } = this.placesOf(tokens, caches, packed);
    let x = this.embedding.forward(toDevice(this.device, tokens)).add(this.position.forward(positions));
    x = dropout(x, this.shape.dropout, this.training);
    for (const [i, block] of this.blocks.modules.entries())
      x = this.throughBlock((x, mask) => block.forward(x!, caches?.[i], mask), caches, x, mask);
    x = this.norm.forward(x);
    return this.head?.forward(x) ?? linear(x, this.embedding.weight);
  }

  get config(): GptShape {
    return this.shape;
  }

  get copies(): Readonly<Record<string, string>> {
    return this.shape.tied ? { "head.weight": "embedding.weight" } : {};
  }

  protected get device(): string {
    return this.position.weight.device;
  }
}
