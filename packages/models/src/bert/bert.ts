/**
 * BERT for masked tokens and the next sentence, with PreLN: the workload of 1-bit LAMB (Li et al. 2021, §4). Names,
 * layouts, logits and loss are those of transformers' MegatronBertForPreTraining, its BERT with PreLN. Its
 * BertForPreTraining normalises after each part, and has other weights.
 */
import {
  call,
  createParameter,
  LayerNorm,
  Linear,
  linear,
  Module,
  type Parameter,
  scope,
  type Tensor,
} from "@terse/tensor";
import type { HuggingFaceConfig } from "../hugging-face-config.ts";
import { initialise } from "../initialise.ts";
import { toDevice } from "../to-device.ts";
import { BertWithHead } from "./bert-with-head.ts";
import { toConfig } from "./config.ts";
import type { BertInput } from "./encoder.ts";
import { accuracyOf, ignored, lossOf } from "./labels.ts";
import type { BertOptions, BertShape } from "./options.ts";

/** A batch for masked tokens and the next sentence. */
export interface BertBatch extends BertInput {
  readonly labels: Tensor; // (B, T) i64: the tokens to predict, −100 elsewhere
  readonly nextSentence: Tensor; // (B) i64: 0 if the second sentence follows the first, 1 if it is a random one
}

class Transform extends Module {
  readonly dense: Linear;
  readonly layerNorm: LayerNorm;

  constructor({ width, eps }: BertShape) {
    super();
    this.dense = new Linear(width, width);
    this.layerNorm = new LayerNorm(width, { eps });
  }

  forward(x: Tensor): Tensor {
    return this.layerNorm.forward(this.dense.forward(x).gelu());
  }

  /** On disk the norm is called LayerNorm. */
  override children(): [name: string, module: Module][] {
    return [
      ["dense", this.dense],
      ["LayerNorm", this.layerNorm],
    ];
  }
}

class Predictions extends Module {
  readonly bias: Parameter; // (V)
  readonly transform: Transform;

  constructor(shape: BertShape) {
    super();
    this.bias = createParameter([shape.vocabulary], "vector", (b) => b.zero_());
    this.transform = new Transform(shape);
  }
}

class Heads extends Module {
  readonly predictions: Predictions;
  readonly seqRelationship: Linear; // (2, d)

  constructor(shape: BertShape) {
    super();
    this.predictions = new Predictions(shape);
    this.seqRelationship = new Linear(shape.width, 2, { role: "head" });
  }
}

export const bertArchitecture = "MegatronBertForPreTraining";

/**
 * BERT with PreLN for masked tokens and the next sentence. Devlin et al. 2019; Xiong et al. 2020. Shapes: see the head
 * of this file.
 */
export class Bert extends BertWithHead {
  readonly cls: Heads;

  /** The head of masked tokens, which is the embedding. */
  readonly copies = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
  };

  constructor(options: BertOptions) {
    super(options);
    this.cls = new Heads(this.shape);
    initialise(this);
  }

  /** Logits of all tokens (B, T, V), and of the next sentence (B, 2). */
  forward(input: BertInput): { tokens: Tensor; nextSentence: Tensor } {
    const { x, pooled } = this.bert.forward(input);
    return { tokens: this.predict(x), nextSentence: this.cls.seqRelationship.forward(pooled) };
  }

  /** The sum of two mean cross entropies: of the masked tokens, and of the next sentence, in nats. → () */
  loss(batch: BertBatch): Tensor {
    return scope(() => {
      const { masked, next } = this.losses(batch);
      return masked.add(next);
    });
  }

  metrics(batch: BertBatch): { loss: Tensor; masked: Tensor; next_accuracy: Tensor } {
    const { masked, next, nextSentence } = this.losses(batch);
    return {
      loss: masked.add(next),
      masked,
      next_accuracy: accuracyOf(nextSentence, toDevice(nextSentence.device, batch.nextSentence)),
    };
  }

  metricUnits(): { loss: string; masked: string; next_accuracy: string } {
    return { loss: "nats", masked: "nats per masked token", next_accuracy: "of the sentence pairs" };
  }

  get config(): HuggingFaceConfig {
    return toConfig(this.shape, bertArchitecture);
  }

  /** x (…, d) → logits (…, V) */
  private predict(x: Tensor): Tensor {
    const { transform, bias } = this.cls.predictions;
    return linear(transform.forward(x), this.bert.embeddings.wordEmbeddings.weight, bias);
  }

  /** The vocabulary's logits are most of a small model's work, so only the tokens to predict, about 15 %, get them. */
  private losses(batch: BertBatch) {
    const { x, pooled } = this.bert.forward(batch);
    const labels = toDevice(x.device, batch.labels).flatten();
    const predicted = (call("aten::nonzero", labels.ne(ignored)) as Tensor).flatten();
    const nextSentence = this.cls.seqRelationship.forward(pooled);
    return {
      nextSentence,
      masked: lossOf(this.predict(x.flatten(0, 1).indexSelect(0, predicted)), labels.indexSelect(0, predicted)),
      next: lossOf(nextSentence, toDevice(x.device, batch.nextSentence)),
    };
  }
}
