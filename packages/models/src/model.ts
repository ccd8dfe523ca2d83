/** What every model has: what the training loop asks of it, and what a recipe says to make one. */
import type { v } from "@terse/options";
import type { Module, Tensor } from "@terse/tensor";

export interface Model extends Module {
  /** What `config.json` says of it, besides its type. */
  readonly config: object;
  /** Tokens a row at most, of models that read tokens. */
  readonly context?: number;
  /** Mean loss of a batch's rows; the batch has the `fields` of the model's entry. */
  loss(batch: object): Tensor;
  /** What is measured on held-out data: means over a batch's rows, the loss first. */
  metrics(batch: object): Readonly<Record<string, Tensor>>;
  /** The unit of each metric, where the data is counted in `unit`s: "byte", "image". */
  metricUnits(unit: string): Readonly<Record<string, string>>;
}

/** A model that can continue a text. */
export interface TextModel extends Model {
  readonly context: number;
  /** Logits (V) of the token after `tokens` (1, T), T ≤ context. */
  nextLogits(tokens: Tensor): Tensor;
}

export const continuesText = (model: Model): model is TextModel => "nextLogits" in model;

/** What the data fixes of a model. */
export interface DataFacts {
  readonly vocabulary?: number; // of its tokens
  readonly length?: number; // tokens a row
}

/** One entry of the registry `models`. */
export interface ModelEntry {
  /** Keys of a recipe's `model` section, besides `name`. */
  readonly options: { readonly entries: v.ObjectEntries };
  /** The tensors of a batch that it reads. */
  readonly fields: readonly string[];
  /** The model that a recipe's options describe, with random weights. Throws `OptionsError` where it does not fit the data. */
  create(options: object, data: DataFacts): Model;
  /** The model that was saved with this `config`, with random weights. Throws `OptionsError`. */
  restore(config: object): Model;
}
