/** The interface of models: what the training loop calls, and what a recipe needs to create one. */
import type { v } from "@terse/options";
import type { KeyValueCache, Module, Tensor } from "@terse/tensor";

/** How the names of a model's tensors in files are found. Where one is absent, files have the model's own names. */
export interface NamesInFiles {
  /**
   * The names under which a parameter is saved: several where each has an equal part of its rows. Files may have its
   * own name too.
   */
  storedAs?(parameter: string): readonly string[];
  /**
   * Other names, in the same form, under which files may have it: those of transformers in memory, where they differ
   * from its files. Adapters of PEFT have them.
   */
  alsoStoredAs?(parameter: string): readonly string[] | undefined;
  /** The prefix of the names of a base model's parameters: "bert.". The base model's own files leave it out. */
  readonly basePrefix?: string;
  /** The parameters that a tied model has once, by the names under which files may have them again. */
  readonly copies?: Readonly<Record<string, string>>;
  /** Names of tensors that files may have besides, and that the model computes or does not use. */
  readonly unused?: RegExp;
}

/** A model that the training loop can train: a module with a loss, metrics, a config.json and names in files. */
export interface Model extends Module, NamesInFiles {
  /** The content of `config.json`, besides the model's type. */
  readonly config: object;
  /** Maximum number of tokens per row, for models that read tokens. */
  readonly context?: number;
  /** Mean loss over a batch's rows. The batch has the `fields` of the model's entry. */
  loss(batch: object): Tensor;
  /**
   * Multiplications by weights in a forward pass of one row: a filter's weight counts once for each place of the image.
   * A model without this uses every weight once for each token.
   */
  multiplications?(row: DataFacts): number;
  /** The metrics of held-out data, as means over a batch's rows. The loss is the first. */
  metrics(batch: object): Readonly<Record<string, Tensor>>;
  /**
   * Names of the head's tensors, here and in files of this model with any head; undefined without a head of its own.
   */
  readonly headNames?: RegExp;
  /**
   * Whether weights for this model may lack a parameter, which then keeps its initial value. Without this, nothing may
   * be absent.
   */
  mayBeAbsent?(parameter: string): boolean;
  /**
   * Whether `adapted` makes a parameter from a stored tensor of another shape: position embeddings for another image
   * size.
   */
  adapts?(parameter: string, shape: readonly number[]): boolean;
  /** The parameter of this model that a stored tensor of another shape gives. */
  adapted?(parameter: string, stored: Tensor): Tensor;
  /**
   * Whether backward computes each block again and keeps only its input: less memory, about a third more computing, the
   * same gradients. Models without it have no such blocks.
   */
  activationCheckpointing?: boolean;
  /** The unit of each metric, for data that is counted in `unit`s: "byte", "image". */
  metricUnits(unit: string): Readonly<Record<string, string>>;
}

/** A model that can continue a text. */
export interface TextModel extends Model {
  readonly context: number;
  /** V: tokens are 0 … V − 1. */
  readonly vocabulary: number;
  /** Logits (V) of the token after `tokens` (1, T), T ≤ context. `caches` have what precedes the tokens. */
  nextLogits(tokens: Tensor, caches?: readonly KeyValueCache[]): Tensor;
  /** Empty caches for `nextLogits`, for so many tokens; for as many as the context has if not given. */
  createCaches(positions?: number): KeyValueCache[];
}

/** Whether a model can continue a text, as `TextModel` does. */
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
  /** Options by the names that `preset` chooses from. */
  readonly presets: Readonly<Record<string, object>>;
  /** Options that a run with weights of others takes from its data. */
  readonly ofData?: readonly string[];
  /** Options that a run with other weights may choose: the weights fit any value of them, and mean the same. */
  readonly ofTraining?: readonly string[];
  /** The layers that LoRA changes where a recipe names none, as in PEFT; without this all linear ones. */
  readonly adapterTargets?: readonly string[];
  /** Names of the tensors of a batch that the model reads. */
  readonly fields: readonly string[];
  /**
   * The options of a recipe that give the model of a `config.json`, all of them. Throws an `OptionsError` that names
   * the key where the model here would compute something else.
   */
  read(config: object): object;
  /** Creates a model with random weights from a recipe's options. Throws `OptionsError` if it does not fit the data. */
  create(options: object, data: DataFacts): Model;
  /** What `model_type` of a config.json may be. */
  readonly modelTypes: readonly string[];
  /**
   * Class names in `architectures` of a config.json that are such models, most of them transformers'. Without this, any
   * name.
   */
  readonly architectures?: readonly string[];
  /** The architectures of the same models without a head. */
  readonly baseArchitectures?: readonly string[];
  /** Creates a model of options that were read, with random weights. Throws `OptionsError`. */
  restore(options: object): Model;
}
