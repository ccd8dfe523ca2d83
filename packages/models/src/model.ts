/** The interface of models: what the training loop calls, and what a recipe needs to create one. */
import type { v } from "@terse/options";
import type { KeyValueCache, Module, Tensor } from "@terse/tensor";

export interface Model extends Module {
  /** The content of `config.json`, besides the model's type. */
  readonly config: object;
  /** Maximum number of tokens per row, for models that read tokens. */
  readonly context?: number;
  /** Mean loss over a batch's rows. The batch has the `fields` of the model's entry. */
  loss(batch: object): Tensor;
  /**
   * Multiplications by weights in a forward pass of one row: a filter's weight counts once for each place of the image. Models without this use
   * every weight once for each token.
   */
  multiplications?(row: DataFacts): number;
  /** The metrics of held-out data, as means over a batch's rows. The loss is the first. */
  metrics(batch: object): Readonly<Record<string, Tensor>>;
  /**
   * This model's name for a tensor that files call `stored`, or which part of a parameter it is; undefined for one that it does not take,
   * because it computes it or has it under another name. Models without this have the same names in files.
   */
  parameterOf?(stored: string): string | PartOf | undefined;
  /** The names under which a parameter is saved: several where each has as many of its rows. Models without this save their own names. */
  storedAs?(parameter: string): readonly string[];
  /** Names of the head's tensors, here and in files of this model with another head; undefined where the head is none of its own. */
  readonly headNames?: RegExp;
  /** Whether weights for this model may lack a parameter, which then keeps its initial value. Nothing may be absent without this. */
  mayBeAbsent?(parameter: string): boolean;
  /** Whether `adapted` makes a parameter of a stored tensor that has another shape: position embeddings for another image size. */
  adapts?(parameter: string, shape: readonly number[]): boolean;
  /** The parameter of this model that a stored tensor of another shape gives. */
  adapted?(parameter: string, stored: Tensor): Tensor;
  /**
   * Whether backward computes each block again and keeps only its input: less memory, about a third more computing, the same gradients.
   * Models without it have no such blocks.
   */
  activationCheckpointing?: boolean;
  /** The unit of each metric, for data that is counted in `unit`s: "byte", "image". */
  metricUnits(unit: string): Readonly<Record<string, string>>;
}

/** A tensor in a file that has some rows of a parameter. */
export interface PartOf {
  readonly parameter: string;
  readonly part: number; // 0 … parts − 1, in the order of the rows
  readonly parts: number;
}

/** A model that can continue a text. */
export interface TextModel extends Model {
  readonly context: number;
  /** V: tokens are 0 … V − 1. */
  readonly vocabulary: number;
  /** Logits (V) of the token after `tokens` (1, T), T ≤ context. With caches, `tokens` follow those that the caches have seen. */
  nextLogits(tokens: Tensor, caches?: readonly KeyValueCache[]): Tensor;
  /** Empty caches for `nextLogits`, for as many tokens as the context has. */
  createCaches(): KeyValueCache[];
}

export const continuesText = (model: Model): model is TextModel => "nextLogits" in model;

/** Properties of the data that a model must fit. */
export interface DataFacts {
  readonly vocabulary?: number; // number of different tokens
  readonly length?: number; // tokens per row
  readonly classes?: number; // labels are 0 … classes − 1
  readonly channels?: number; // of images
  readonly height?: number; // of images, in pixels
  readonly width?: number;
}

/** One entry of the registry `models`. */
export interface ModelEntry {
  /** Keys of a recipe's `model` section, besides `name`. */
  readonly options: { readonly entries: v.ObjectEntries };
  /** Names of the tensors of a batch that the model reads. */
  readonly fields: readonly string[];
  /** Creates a model from a recipe's options, with random weights. Throws `OptionsError` if it does not fit the data. */
  create(options: object, data: DataFacts): Model;
  /** Number of elements in the parameters and buffers of a model of this `config`, without their memory. Throws `OptionsError`. */
  count(config: object): number;
  /** Names of classes that are such models, most of them transformers', in `architectures` of a config.json. */
  readonly architectures?: readonly string[];
  /** Creates a model from the `config` of a saved one, with random weights. Throws `OptionsError`. */
  restore(config: object): Model;
}
