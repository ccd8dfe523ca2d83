/** The interface of models: what the training loop calls, and what a recipe needs to create one. */
import type { v } from "@terse/options";
import type { Module, Tensor } from "@terse/tensor";

export interface Model extends Module {
  /** The content of `config.json`, besides the model's type. */
  readonly config: object;
  /** Maximum number of tokens per row, for models that read tokens. */
  readonly context?: number;
  /** Mean loss over a batch's rows. The batch has the `fields` of the model's entry. */
  loss(batch: object): Tensor;
  /** The metrics of held-out data, as means over a batch's rows. The loss is the first. */
  metrics(batch: object): Readonly<Record<string, Tensor>>;
  /** The unit of each metric, for data that is counted in `unit`s: "byte", "image". */
  metricUnits(unit: string): Readonly<Record<string, string>>;
}

/** A model that can continue a text. */
export interface TextModel extends Model {
  readonly context: number;
  /** Logits (V) of the token after `tokens` (1, T), T ≤ context. */
  nextLogits(tokens: Tensor): Tensor;
}

export const continuesText = (model: Model): model is TextModel => "nextLogits" in model;

/** Properties of the data that a model must fit. */
export interface DataFacts {
  readonly vocabulary?: number; // number of different tokens
  readonly length?: number; // tokens per row
}

/** One entry of the registry `models`. */
export interface ModelEntry {
  /** Keys of a recipe's `model` section, besides `name`. */
  readonly options: { readonly entries: v.ObjectEntries };
  /** Names of the tensors of a batch that the model reads. */
  readonly fields: readonly string[];
  /** Creates a model from a recipe's options, with random weights. Throws `OptionsError` if it does not fit the data. */
  create(options: object, data: DataFacts): Model;
  /** Number of parameters that a model of this `config` has, without making it. Throws `OptionsError`. */
  count(config: object): number;
  /** Creates a model from the `config` of a saved one, with random weights. Throws `OptionsError`. */
  restore(config: object): Model;
}
