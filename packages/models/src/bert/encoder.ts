/**
 * BERT's encoder with PreLN: each part reads normalised input, and the last output is normalised. Devlin et al. 2019;
 * Xiong et al. 2020 (PreLN). Names and layouts of parameters are those of transformers' MegatronBertModel. That model
 * keeps the gradient of the embedding of token 0, its padding, at zero. Here any token may be padding: nothing attends
 * to it, so it has no gradient.
 *
 * Shapes: tokens, segments, mask (B, T) i64   x (B, T, d)   pooled (B, d)
 */
import {
  arange,
  checkpoint,
  dropout,
  Embedding,
  joinHeads,
  LayerNorm,
  Linear,
  Module,
  ModuleList,
  scaledDotProductAttention,
  scope,
  type Tensor,
} from "@terse/tensor";
import { toDevice } from "../to-device.ts";
import type { BertShape } from "./options.ts";

/** What the encoder reads. */
export interface BertInput {
  readonly tokens: Tensor; // (B, T) i64
  readonly segments: Tensor; // (B, T) i64: 0 for the first sentence, 1 for the second
  readonly mask: Tensor; // (B, T) i64: 1 for tokens, 0 for padding, which nothing attends to
}

class Embeddings extends Module {
  readonly wordEmbeddings: Embedding; // (V, d); also the head of masked tokens
  readonly positionEmbeddings: Embedding; // (context, d)
  readonly tokenTypeEmbeddings: Embedding; // (2, d)

  constructor({ vocabulary, context, width }: BertShape) {
    super();
    this.wordEmbeddings = new Embedding(vocabulary, width);
    this.positionEmbeddings = new Embedding(context, width);
    this.tokenTypeEmbeddings = new Embedding(2, width);
  }

  forward(tokens: Tensor, segments: Tensor): Tensor {
    const positions = arange(tokens.shape[1]!, { dtype: "i64", device: tokens.device });
    return this.wordEmbeddings
      .forward(tokens)
      .add(this.tokenTypeEmbeddings.forward(segments))
      .add(this.positionEmbeddings.forward(positions));
  }
}

class SelfAttention extends Module {
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;
  readonly heads: number;
  readonly p: number;

  constructor({ width, heads, dropout, attentionDropout }: BertShape) {
    super();
    this.query = new Linear(width, width);
    this.key = new Linear(width, width);
    this.value = new Linear(width, width);
    this.heads = heads;
    this.p = attentionDropout ?? dropout;
  }

  /** mask (B, 1, 1, T) bool */
  forward(x: Tensor, mask: Tensor): Tensor {
    const [batch, time, width] = x.shape as [number, number, number];
    const [q, k, v] = [this.query, this.key, this.value].map(
      (layer) =>
        layer
          .forward(x)
          .view(batch, time, this.heads, width / this.heads)
          .transpose(1, 2), // (B, h, T, d/h)
    ) as [Tensor, Tensor, Tensor];
    const y = scaledDotProductAttention(q, k, v, { mask, dropout: this.training ? this.p : 0 });
    return joinHeads(y);
  }
}

/** A linear layer in a module of its own, as transformers names it: "output.dense.weight". */
class Dense extends Module {
  readonly dense: Linear;

  constructor(inputs: number, outputs: number) {
    super();
    this.dense = new Linear(inputs, outputs);
  }

  forward(x: Tensor): Tensor {
    return this.dense.forward(x);
  }
}

class Attention extends Module {
  readonly ln: LayerNorm;
  readonly self: SelfAttention;
  readonly output: Dense;

  constructor(shape: BertShape) {
    super();
    this.ln = new LayerNorm(shape.width, { eps: shape.eps });
    this.self = new SelfAttention(shape);
    this.output = new Dense(shape.width, shape.width);
  }

  forward(x: Tensor, mask: Tensor): Tensor {
    return this.output.forward(this.self.forward(this.ln.forward(x), mask));
  }
}

class Layer extends Module {
  readonly attention: Attention;
  readonly ln: LayerNorm;
  readonly intermediate: Dense;
  readonly output: Dense;
  readonly p: number;

  constructor(shape: BertShape) {
    super();
    this.attention = new Attention(shape);
    this.ln = new LayerNorm(shape.width, { eps: shape.eps });
    this.intermediate = new Dense(shape.width, shape.hidden);
    this.output = new Dense(shape.hidden, shape.width);
    this.p = shape.dropout;
  }

  forward(x: Tensor, mask: Tensor): Tensor {
    x = x.add(dropout(this.attention.forward(x, mask), this.p, this.training));
    const hidden = this.intermediate.forward(this.ln.forward(x)).gelu();
    return x.add(dropout(this.output.forward(hidden), this.p, this.training));
  }
}

class Layers extends Module {
  readonly layer: ModuleList<Layer>;
  readonly ln: LayerNorm;
  activationCheckpointing = false;

  constructor(shape: BertShape) {
    super();
    this.layer = new ModuleList(Array.from({ length: shape.layers }, () => new Layer(shape)));
    this.ln = new LayerNorm(shape.width, { eps: shape.eps });
  }

  forward(x: Tensor, mask: Tensor): Tensor {
    for (const layer of this.layer)
      x = this.activationCheckpointing
        ? checkpoint((x, mask) => layer.forward(x!, mask!), x, mask)
        : scope(() => layer.forward(x, mask));
    return this.ln.forward(x);
  }
}

export class BertEncoder extends Module {
  readonly embeddings: Embeddings;
  readonly encoder: Layers;
  readonly pooler: Dense;

  readonly shape: BertShape;

  constructor(shape: BertShape) {
    super();
    this.shape = shape;
    this.embeddings = new Embeddings(shape);
    this.encoder = new Layers(shape);
    this.pooler = new Dense(shape.width, shape.width);
  }

  /** x (B, T, d), and `pooled` (B, d), which stands for the whole row: it is computed from the first token. */
  forward({ tokens, segments, mask }: BertInput): { x: Tensor; pooled: Tensor } {
    const T = tokens.shape[1]!;
    if (T > this.shape.context)
      throw new RangeError(
        `bert: ${T} tokens do not fit its context of ${this.shape.context}; shorten the rows, or use a larger context`,
      );
    const { device } = this.embeddings.wordEmbeddings.weight;
    let x = this.embeddings.forward(toDevice(device, tokens), toDevice(device, segments));
    x = dropout(x, this.shape.dropout, this.training);
    const attended = toDevice(device, mask).ne(0).unsqueeze(1).unsqueeze(1); // (B, 1, 1, T)
    x = this.encoder.forward(x, attended);
    return { x, pooled: this.pooler.forward(x.select(1, 0)).tanh() };
  }
}
