/** Recipes: the schema, the YAML file, and overrides from the command line. */
import { readFileSync } from "node:fs";
import { datasets } from "@terse/data";
import { denseTypes, type VoteSchemeName, voteSchemes } from "@terse/exchange";
import { models } from "@terse/models";
import { algorithms, clipBys } from "@terse/optimizers";
import {
  applyOverrides,
  nonNegative,
  nonNegativeInteger,
  OptionsError,
  oneOf,
  parseOptions,
  parseYaml,
  positive,
  positiveFloat,
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
  lr: positiveFloat, // η at the schedule's top
  clip: v.optional(nonNegative, 0), // 0: no clipping
  clipBy: v.optional(oneOf(clipBys), "global"), // whose norm; with "previous" and "bucket" votes leave while backward runs
});

const schedule = v.object({
  name: v.optional(oneOf(["cosine", "constant"]), "cosine"),
  warmup: v.optional(nonNegativeInteger, 0), // steps
  final: v.optional(nonNegative, 0.1), // of lr, at the last step
});

/** "cuda": each rank takes the GPU with its local rank's number; "cuda:0": all ranks of a machine share its first GPU. */
const device = v.optional(
  v.pipe(
    text,
    v.regex(/^(cpu|cuda(:\d+)?)$/, 'must be "cpu", "cuda" or, for example, "cuda:0"'),
    v.description("cpu, cuda or, for example, cuda:0"),
  ),
  "cpu",
);

/** The type of means on the wire, and the vote scheme. */
const exchange = v.object({
  dense: v.optional(oneOf(denseTypes), "f32"),
  vote: v.optional(oneOf(Object.keys(voteSchemes) as VoteSchemeName[]), "all-to-all"),
  ranksPerHost: v.optional(positiveInteger), // of vote: hierarchical
  inside: v.optional(oneOf(["signs", "dense"])), // of vote: hierarchical, what ranks of one host send to each other; signs if absent
  width: v.optional(positiveInteger), // of vote: count, bits of a field; the narrowest possible if absent
  chunk: v.optional(positiveInteger), // of vote: all-to-all, parameters on the wire at once
});

export const recipeSchema = v.object({
  seed: v.optional(nonNegativeInteger, 0),
  steps: positiveInteger,
  accumulate: v.optional(positiveInteger, 1),
  device, // of model and optimizer; votes are counted on the CPU
  overlap: v.optional(oneOf(["auto", "on", "off"]), "auto"), // send messages while backward runs
  bucket: v.optional(v.union([v.literal("auto"), positiveInteger])), // smallest number of parameters in a message; auto: chosen from the times of the first steps
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

/** The default recipe. */
export const defaultRecipe: URL = new URL("../recipes/gpt-small.yaml", import.meta.url);

/** Keys that a resumed run must keep, because its saved state depends on them. */
const kept = ["seed", "accumulate", "model", "data", "optimizer.name"] as const;

/** The recipe of a saved run with overrides; throws `OptionsError` for keys that must stay. */
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

/** The recipe of a file with dotted overrides, checked, and with all defaults filled in. */
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
