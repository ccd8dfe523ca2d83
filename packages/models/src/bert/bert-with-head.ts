import { parseOptions } from "@terse/options";
import { Module, type Tensor } from "@terse/tensor";
import type { HuggingFaceConfig } from "../hugging-face-config.ts";
import type { Model } from "../model.ts";
import { BertEncoder, type BertInput } from "./encoder.ts";
import { type BertOptions, type BertShape, bertOptions } from "./options.ts";

/** What models of BERT with a head have in common: the encoder, and the names in files. */
export abstract class BertWithHead extends Module implements Model {
  readonly bert: BertEncoder;

  readonly shape: BertShape;
  readonly headNames = /^(cls|classifier)\./; // of pre-training, and of classification
  readonly basePrefix = "bert.";
  readonly unused = /(^|\.)position_ids$/; // the numbers of positions

  constructor(options: BertOptions) {
    super();
    this.shape = parseOptions(bertOptions, options, "bert");
    this.bert = new BertEncoder(this.shape);
  }

  abstract readonly config: HuggingFaceConfig;
  abstract loss(batch: BertInput): Tensor;
  abstract metrics(batch: BertInput): Readonly<Record<string, Tensor>>;
  abstract metricUnits(unit: string): Readonly<Record<string, string>>;

  get activationCheckpointing(): boolean {
    return this.bert.encoder.activationCheckpointing;
  }

  set activationCheckpointing(on: boolean) {
    this.bert.encoder.activationCheckpointing = on;
  }

  get context(): number {
    return this.shape.context;
  }
}
