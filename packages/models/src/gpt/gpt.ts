/**
 * GPT in the form of the Lion papers: GPT-2 with RMSNorm and SwiGLU, no biases.
 * Radford et al. 2019; Zhang and Sennrich 2019 (RMSNorm); Shazeer 2020 (SwiGLU); Ishikawa et al. 2024, §7 and D.1.
 *
 * Shapes: tokens (B, T)   x (B, T, d)   logits (B, T, V)
 */
import { parseOptions } from "@terse/options";
import {
  arange,
  CausalSelfAttention,
  crossEntropy,
  Embedding,
  Linear,
  linear,
  Module,
  ModuleList,
  noGrad,
  RMSNorm,
  swiglu,
  type Tensor,
} from "@terse/tensor";
import type { TextModel } from "../model.ts";
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

  constructor({ width, heads }: GptShape) {
    super();
    this.attentionNorm = new RMSNorm(width, { eps });
    this.attention = new CausalSelfAttention(width, heads);
    this.mlpNorm = new RMSNorm(width, { eps });
    this.mlp = new SwiGlu(width);
  }

  forward(x: Tensor): Tensor {
    x = x.add(this.attention.forward(this.attentionNorm.forward(x)));
    return x.add(this.mlp.forward(this.mlpNorm.forward(x)));
  }
}

/** Copies tokens from the CPU to the device of the weights. */
const toDevice = (device: string, tokens: Tensor) => (tokens.device === device ? tokens : tokens.to({ device }));

export class Gpt extends Module implements TextModel {
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
    this.initialise();
  }

  /** Number of parameters that a model of this shape has, without making it. Throws `OptionsError`. */
  static countParameters(options: GptOptions): number {
    const { vocabulary, context, width: d, layers, tied } = parseOptions(gptOptions, options, "gpt");
    const block = 2 * d + 4 * d * d + 3 * d * hiddenOf(d); // norms, attention, SwiGLU
    return (vocabulary * (tied ? 1 : 2) + context) * d + layers * block + d;
  }

  forward(tokens: Tensor): Tensor {
    const T = tokens.shape[1]!;
    if (T > this.shape.context)
      throw new RangeError(
        `gpt: ${T} tokens do not fit its context of ${this.shape.context}; shorten the sequence, or use a larger context`,
      );
    const { device } = this.position.weight;
    let x = this.embedding
      .forward(toDevice(device, tokens))
      .add(this.position.forward(arange(T, { dtype: "i64", device })));
    for (const block of this.blocks) x = block.forward(x);
    return linear(this.norm.forward(x), this.head?.weight ?? this.embedding.weight);
  }

  /** Mean cross entropy of the next token, in nats. tokens, next (B, T) i64 → () */
  loss({ tokens, next }: { tokens: Tensor; next: Tensor }): Tensor {
    return crossEntropy(this.forward(tokens), toDevice(this.position.weight.device, next));
  }

  metrics(batch: { tokens: Tensor; next: Tensor }): { loss: Tensor } {
    return { loss: this.loss(batch) };
  }

  metricUnits(unit: string): { loss: string } {
    return { loss: `nats per ${unit}` };
  }

  nextLogits(tokens: Tensor): Tensor {
    return this.forward(tokens)
      .select(1, tokens.shape[1]! - 1)
      .flatten();
  }

  get config(): GptShape {
    return this.shape;
  }

  get context(): number {
    return this.shape.context;
  }

  /** Weights from N(0, 0.02²); σ is divided by √(2 layers) for those that write into the residual stream. Radford et al. 2019, §2.3. */
  private initialise(): void {
    noGrad(() => {
      for (const [name, parameter] of this.namedParameters()) {
        if (parameter.shape.length < 2) continue; // norms stay 1
        const residual = name.endsWith("attention.out.weight") || name.endsWith("mlp.down.weight");
        parameter.normal_({ std: residual ? 0.02 / Math.sqrt(2 * this.shape.layers) : 0.02 });
      }
    });
  }
}
