/**
 * BERT with PreLN that assigns a class to each row. Devlin et al. 2019, §4.1.
 * Names, layouts, logits and loss are those of transformers' MegatronBertForSequenceClassification.
 */
import { parseOptions, positiveInteger, v } from "@terse/options";
import { dropout, Linear, scope, type Tensor } from "@terse/tensor";
import { type HuggingFaceConfig, labelsOf } from "../hugging-face-config.ts";
import { initialise } from "../initialise.ts";
import { toDevice } from "../to-device.ts";
import { BertWithHead } from "./bert-with-head.ts";
import { toConfig } from "./config.ts";
import type { BertInput } from "./encoder.ts";
import { accuracyOf, lossOf } from "./labels.ts";
import type { BertOptions } from "./options.ts";

/** A batch of sentences, or pairs of them, with their classes. */
export interface BertClassifierBatch extends BertInput {
  readonly labels: Tensor; // (B) i64
}

export interface BertClassifierOptions extends BertOptions {
  readonly classes: number;
}

const classesOption = v.object({ classes: positiveInteger });

export const bertClassifierArchitecture = "MegatronBertForSequenceClassification";

/** BERT with PreLN that assigns a class to each row. Devlin et al. 2019, §4.1. */
export class BertClassifier extends BertWithHead {
  readonly classifier: Linear; // (classes, d)

  readonly classes: number;

  constructor({ classes, ...options }: BertClassifierOptions) {
    super(options);
    this.classes = parseOptions(classesOption, { classes }, "bert").classes;
    this.classifier = new Linear(this.shape.width, this.classes, { role: "head" });
    initialise(this);
  }

  /** Logits (B, classes). */
  forward(input: BertInput): Tensor {
    const { pooled } = this.bert.forward(input);
    return this.classifier.forward(dropout(pooled, this.shape.dropout, this.training));
  }

  /** Mean cross entropy of the rows' classes, in nats. → () */
  loss(batch: BertClassifierBatch): Tensor {
    return scope(() => this.metrics(batch).loss);
  }

  metrics(batch: BertClassifierBatch): { loss: Tensor; accuracy: Tensor } {
    const logits = this.forward(batch);
    const labels = toDevice(logits.device, batch.labels);
    return { loss: lossOf(logits, labels), accuracy: accuracyOf(logits, labels) };
  }

  metricUnits(unit: string): { loss: string; accuracy: string } {
    return { loss: `nats per ${unit}`, accuracy: `of the ${unit}s` };
  }

  get config(): HuggingFaceConfig {
    return { ...toConfig(this.shape, bertClassifierArchitecture), ...labelsOf(this.classes) };
  }
}
