/** A run as data: the recipe file, what the command line changes in it, and what a recipe may say. */
import { readFileSync } from "node:fs";
import { datasets } from "@terse/data";
import { type VoteSchemeName, voteSchemes } from "@terse/exchange";
import { models } from "@terse/models";
import { algorithms } from "@terse/optimizers";
import {
  applyOverrides,
  nonNegative,
  nonNegativeInteger,
  OptionsError,
  oneOf,
  parseOptions,
  parseYaml,
  positive,
  positiveInteger,
  text,
  v,
} from "@terse/options";

/** A section whose `name` chooses an entry of a registry; it takes the entry's options, and `shared` ones. */
function section<Name extends string, const Shared extends v.ObjectEntries>(
  registry: Readonly<Record<Name, { readonly options: { readonly entries: object } }>>,
  shared: Shared,
) {
  const names = Object.keys(registry) as Name[];
  return v.variant(
    "name",
    names.map((name) => v.object({ name: v.literal(name), ...shared, ...(registry[name].options.entries as object) })),
  );
}

const model = section(models, {});

const data = section(datasets, {
  batchSize: v.optional(positiveInteger, 4), // rows a rank and micro-batch
});

const optimizer = section(algorithms, {
  lr: positive, // η at the schedule's top
  clip: v.optional(nonNegative, 0), // 0: no clipping
  clipBy: v.optional(oneOf(["global", "bucket"]), "global"), // whose norm; "bucket" lets buckets leave one by one
});

const schedule = v.object({
  name: v.optional(oneOf(["cosine", "constant"]), "cosine"),
  warmup: v.optional(nonNegativeInteger, 0), // steps
  final: v.optional(nonNegative, 0.1), // of lr, at the last step
});

/** "cuda" is the GPU of the rank's number on its machine, "cuda:0" the first one, for all ranks there. */
const device = v.optional(
  v.pipe(text, v.regex(/^(cpu|cuda(:\d+)?)$/, 'must be "cpu", "cuda" or, for example, "cuda:0"')),
  "cpu",
);

/** How means travel, and how votes are counted. */
const exchange = v.object({
  dense: v.optional(oneOf(["f32", "bf16", "f16", "int8"]), "f32"),
  vote: v.optional(oneOf(Object.keys(voteSchemes) as VoteSchemeName[]), "all-to-all"),
  ranksPerHost: v.optional(positiveInteger), // of vote: hierarchical
  inside: v.optional(oneOf(["signs", "dense"])), // of vote: hierarchical, what ranks of one host send each other; signs if absent
  width: v.optional(positiveInteger), // of vote: count, bits of a field; the narrowest with room if absent
  chunk: v.optional(positiveInteger), // of vote: all-to-all, parameters on the wire at once
});

export const recipeSchema = v.object({
  seed: v.optional(nonNegativeInteger, 0),
  steps: positiveInteger,
  accumulate: v.optional(positiveInteger, 1),
  device, // where model and optimizer are; votes are counted on the CPU
  overlap: v.optional(oneOf(["auto", "on", "off"]), "auto"), // messages leave while backward still runs
  bucket: v.optional(v.union([v.literal("auto"), positiveInteger])), // least parameters of a message; auto: by what the first steps take
  exchange: v.optional(exchange, {}),
  model,
  data,
  optimizer,
  schedule: v.optional(schedule, {}),
  evaluate: v.optional(
    v.object({ every: v.optional(nonNegativeInteger, 0), windows: v.optional(positiveInteger, 64) }),
    {},
  ),
  save: v.optional(v.object({ every: v.optional(nonNegativeInteger, 0) }), {}),
  sample: v.optional(
    v.object({ bytes: v.optional(nonNegativeInteger, 400), temperature: v.optional(positive, 0.8) }),
    {},
  ),
  logEvery: v.optional(positiveInteger, 10),
  compareEvery: v.optional(nonNegativeInteger, 100),
});

/** What the command line may override: --KEY=VALUE. */
export const recipeKeys: readonly string[] = Object.keys(recipeSchema.entries);

export type Recipe = v.InferOutput<typeof recipeSchema>;

/** The recipe that runs when none is named. */
export const embedded: URL = new URL("../recipes/gpt-small.yaml", import.meta.url);

/** What a saved state depends on: a resumed run keeps it. */
const kept = ["seed", "accumulate", "model", "data", "optimizer.name"] as const;

/** The recipe of a saved run, with overrides of what may change: steps, learning rate, how often it says something. */
export function resumedRecipe(file: string, overrides: readonly string[]): Recipe {
  const before = readTree(file);
  const after = applyOverrides(before, overrides);
  const of = (tree: Tree, key: string) =>
    JSON.stringify(key.split(".").reduce<unknown>((value, part) => (value as Tree | undefined)?.[part], tree));
  const problems = kept
    .filter((key) => of(before, key) !== of(after, key))
    .map((key) => `${key}: a resumed run keeps its own (${of(before, key)}); start a new run to change it`);
  if (problems.length > 0) throw new OptionsError(problems);
  return parseOptions(recipeSchema, after, "");
}

/** The recipe of a file with dotted overrides on it, checked and with every default filled in. */
export function readRecipe(file: string | URL, overrides: readonly string[]): Recipe {
  return parseOptions(recipeSchema, applyOverrides(readTree(file), overrides), "");
}

type Tree = Record<string, unknown>;

function readTree(file: string | URL): Tree {
  let source: string;
  try {
    source = readFileSync(file, "utf8");
  } catch (error) {
    throw new OptionsError([
      `recipe ${String(file)} cannot be read (${(error as NodeJS.ErrnoException).code}); name a YAML file with --recipe`,
    ]);
  }
  return parseYaml(source, String(file)) as Tree;
}
