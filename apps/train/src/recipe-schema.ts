/** What a recipe may say, and what holds where it says nothing. */
import { datasets } from "@terse/data";
import { denseTypes, type VoteSchemeName, voteSchemes } from "@terse/exchange";
import { loraOptions, models } from "@terse/models";
import { algorithms, clipBys, fragmentOrders, gradientCompressions } from "@terse/optimizers";
import {
  finite,
  flag,
  listOptions,
  nonNegative,
  nonNegativeInteger,
  oneOf,
  positive,
  positiveFloat,
  positiveInteger,
  text,
  v,
} from "@terse/options";
import { roles } from "@terse/tensor";
import { scheduleOptions, schedules } from "./schedules/schedules.ts";

/**
 * A section whose `name` chooses an entry of a registry; it takes the entry's options, and `shared` ones. `fallback`:
 * without a name.
 */
function section<Name extends string, const Shared extends v.ObjectEntries>(
  registry: Readonly<Record<Name, { readonly options: { readonly entries: object } }>>,
  shared: Shared,
  fallback?: Name,
) {
  const names = Object.keys(registry) as Name[];
  const nameOf = (name: Name) => (name === fallback ? v.optional(v.literal(name), () => name) : v.literal(name));
  return v.variant(
    "name",
    names.map((name) => v.object({ name: nameOf(name), ...shared, ...(registry[name].options.entries as object) })),
  );
}

const model = section(models, {});

/** What is trained in place of the model's weights, which stay as they are. */
const adapter = v.variant("name", [
  v.object({
    name: v.literal("lora"),
    ...loraOptions.entries,
    base: v.optional(oneOf(["f32", "bf16"]), "f32"), // the type in which memory holds the frozen weights
  }),
]);

/** A list has an entry for each. */
const batchCount = v.pipe(positiveInteger, v.maxValue(1_000_000));

const dataOptions = {
  batchSize: v.optional(batchCount, 4), // rows a rank and micro-batch
};
const data = section(datasets, dataOptions);

/** Options that every group has, besides those of its optimizer. */
const groupOptions = {
  roles: v.optional(v.array(oneOf(roles))), // any of these
  parameters: v.optional(text), // names, in which * stands for any characters
  lr: v.optional(positiveFloat), // η at the schedule's top; optimizer.lr if absent
};

/** Roles whose parameters have no weight decay, whichever optimizer they have. */
const noDecay = v.optional(v.array(oneOf(roles)), []);

/** Options of every optimizer, beside its own. */
const methodOptions = {
  lr: positiveFloat, // η at the schedule's top
  noDecay,
  groups: v.optional(
    v.pipe(
      v.array(section(algorithms, groupOptions)),
      v.description("a list of groups, each with roles or parameters, name, lr, and the options of that optimizer"),
    ),
    [],
  ),
};

const optimizer = section(algorithms, {
  ...methodOptions,
  clip: v.optional(nonNegative, 0), // 0: no clipping
  // The norm that clips. With "previous" and "bucket" votes leave while backward runs.
  clipBy: v.optional(oneOf(clipBys), "global"),
});

/** The outer step as DiLoCo has it; Douillard et al. 2023, §3, https://arxiv.org/abs/2311.08105 */
export const standardOuter = { name: "sgd", lr: 0.7, momentum: 0.9, nesterov: true } as const;

/** Local steps: each rank trains by itself, and every so many steps all ranks share what they have found. */
const local = v.object({
  syncEvery: positiveInteger, // H, steps between two rounds of the same parameters
  fragments: v.optional(positiveInteger, 1), // F, parts of the model that take turns; a round every H / F steps
  order: v.optional(oneOf(fragmentOrders), "strided"), // which layers a fragment has
  delay: v.optional(nonNegativeInteger, 0), // τ, steps beside which a round travels
  alpha: v.optional(v.pipe(nonNegative, v.maxValue(1)), 0), // α, share of its own work that a rank keeps
  rebase: v.optional(v.boolean(), false), // whether its steps beside a round go on top of what the round brings
  within: v.optional(oneOf(["rank", "host"]), "rank"), // who takes steps together between two rounds
  ranksPerHost: v.optional(positiveInteger), // of within: host; what the launcher says if absent
  // The step that all ranks take together in a round; its lr follows no schedule.
  optimizer: v.optional(section(algorithms, methodOptions), standardOuter),
});

/** The exponential moving average of the weights (weight-average.ts). */
const average = v.object({
  decay: v.optional(v.pipe(nonNegative, v.ltValue(1)), 0.999), // share that the average keeps of itself in a step
  from: v.optional(nonNegativeInteger, 0), // steps before the first that counts
});

const schedule = section(schedules, scheduleOptions, "cosine");

/**
 * "cuda": each rank takes the GPU with its local rank's number; "cuda:0": all ranks of a machine share its first GPU.
 */
const device = v.optional(
  v.pipe(
    text,
    v.regex(/^(cpu|cuda(:\d+)?)$/, 'must be "cpu", "cuda" or, for example, "cuda:0"'),
    v.description("cpu, cuda or, for example, cuda:0"),
  ),
  "cpu",
);

/** The type of means on the wire, how gradients are compressed in place of their mean, and the vote scheme. */
const exchange = v.object({
  // Under an optimizer that takes a mean; not compressed if absent or null.
  gradient: v.optional(section(gradientCompressions, {})),
  dense: v.optional(oneOf(denseTypes), "f32"),
  // Of what one rank computes for all: Muon's updates, factors of Dion and PowerSGD. All ranks use what was sent.
  computed: v.optional(oneOf(denseTypes), "f32"),
  vote: v.optional(oneOf(Object.keys(voteSchemes) as VoteSchemeName[]), "all-to-all"),
  ranksPerHost: v.optional(positiveInteger), // of vote: hierarchical
  // With vote: hierarchical, what the ranks of a host send to each other; signs if absent.
  inside: v.optional(oneOf(["signs", "dense"])),
  width: v.optional(positiveInteger), // of vote: count, bits of a field; the narrowest possible if absent
  chunk: v.optional(positiveInteger), // of vote: all-to-all, parameters on the wire at once
  // Running statistics: each rank's own, or their means from each evaluation and save on.
  buffers: v.optional(oneOf(["local", "mean"]), "local"),
});

/** The ranks as data × weight. Along the weight axis they share the state of optimizers that can be sharded. */
const parallel = v.object({
  data: v.optional(positiveInteger), // the ranks divided by weight if absent
  weight: v.optional(positiveInteger, 1), // shards of each matrix's state
});

/** Who else gets the numbers of a run: services that compare runs, by their own clients (monitoring/tracker.ts). */
const track = v.object({
  wandb: v.optional(oneOf(["offline", "online"])), // not tracked if absent
  // A tracking URI or a folder; "auto": MLflow's own choice. Not tracked if absent.
  mlflow: v.optional(
    v.pipe(
      text,
      v.regex(
        /^(?!.*:\/\/[^/]*@)\S+$/,
        "must be a tracking URI without a password (which MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD have), a folder, or auto",
      ),
      v.description("a tracking URI, a folder, or auto"),
    ),
  ),
  project: v.optional(text, "terse"), // W&B's project and MLflow's experiment
  name: v.optional(text), // the folder's if absent
});

export const recipeSchema = v.object({
  seed: v.optional(nonNegativeInteger, 0),
  steps: positiveInteger,
  accumulate: v.optional(batchCount, 1),
  device, // of model and optimizer; votes are counted on the CPU
  // The type of forward and backward; parameters, gradients and optimizer state are f32.
  precision: v.optional(oneOf(["f32", "bf16"]), "f32"),
  // Backward computes each block again and keeps only its input: less memory, a third more computing.
  activationCheckpointing: v.optional(flag, false),
  overlap: v.optional(oneOf(["auto", "on", "off"]), "auto"), // send messages while backward runs
  // Smallest number of parameters in a message; auto: chosen from the times of the first steps.
  bucket: v.optional(v.union([v.literal("auto"), positiveInteger])),
  exchange: v.optional(exchange, {}), // with `local`: of a round
  local: v.optional(local), // a message in every step if absent
  parallel: v.optional(parallel, {}),
  model,
  adapter: v.optional(adapter), // all weights are trained if absent
  trainedWeights: v.optional(flag, false), // its rates are for trained weights: a new run needs --init-from
  data,
  optimizer,
  schedule: v.optional(schedule, { name: "cosine" }),
  average: v.optional(average), // none if absent
  evaluate: v.optional(
    v.object({
      every: v.optional(nonNegativeInteger, 0),
      windows: v.optional(v.union([v.literal("all"), positiveInteger]), 64), // rows
    }),
    {},
  ),
  save: v.optional(
    v.object({
      // Steps between saves; evaluate.every if absent, and 0 for none but the last.
      every: v.optional(nonNegativeInteger),
      keep: v.optional(positiveInteger, 2), // saves that stay
      best: v.optional(v.boolean(), false), // one more stays: that of the lowest validation loss
    }),
    {},
  ),
  stop: v.optional(
    v.object({
      patience: v.optional(positiveInteger), // evaluations without a lower loss
      minDelta: v.optional(nonNegative, 0), // by how much it must be lower
      target: v.optional(finite), // a validation loss
    }),
  ),
  sample: v.optional(
    v.object({
      bytes: v.optional(nonNegativeInteger, 400),
      temperature: v.optional(positive, 0.8),
      topK: v.optional(nonNegativeInteger, 0), // only the k most likely tokens; 0: all
      topP: v.optional(v.pipe(positive, v.maxValue(1)), 1), // only the most likely tokens that sum to p
    }),
    {},
  ),
  logEvery: v.optional(positiveInteger, 10),
  compareEvery: v.optional(nonNegativeInteger, 100),
  trace: v.optional(
    v.object({
      steps: v.optional(nonNegativeInteger, 0), // of which trace.json says what happened when, on all ranks; 0: none
      from: v.optional(nonNegativeInteger, 5), // the first of them, counted from where this process began
    }),
    {},
  ),
  track: v.optional(track),
  // Say at the end what the network costs, and what other methods would cost; runs of 50 steps and more.
  advise: v.optional(flag, true),
  // Steps between two samples of how far the ranks agree (docs/metrics.md); 0: none.
  measureEvery: v.optional(nonNegativeInteger, 100),
});

/** What the command line may override: --KEY=VALUE. */
export const recipeKeys: readonly string[] = Object.keys(recipeSchema.entries);

/** All keys with their dots: "data.batchSize". */
export const dottedKeys = (): string[] => [...new Set(listOptions(recipeSchema).map(({ name }) => name))];

export type Recipe = v.InferOutput<typeof recipeSchema>;
