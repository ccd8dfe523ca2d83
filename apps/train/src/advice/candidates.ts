/**
 * The methods that advice and dry runs compare: what a run could send instead. Each keeps the run's learning rate and
 * clipping.
 */
import { algorithms } from "@terse/optimizers";
import { linesOfError, OptionsError, parseOptions } from "@terse/options";
import { checkedRecipe, type Recipe } from "../recipe.ts";
import { recipeSchema } from "../recipe-schema.ts";

export interface Candidate {
  readonly name: string;
  readonly optimizer: { readonly name: string; readonly [option: string]: unknown };
  readonly exchange?: { readonly [option: string]: unknown };
  readonly local?: { readonly syncEvery: number; readonly [option: string]: unknown };
}

const adamwForVectors = [{ roles: ["embedding", "head", "norm", "vector"], name: "adamw" }];
const fourBits = { gradient: { name: "codec", codec: "l1", bits: 4 } };
const mean = { name: "sgd", lr: 1 }; // of what the ranks have found

/** The methods after their warm-ups, which no step time here includes. */
export const candidates: readonly Candidate[] = [
  { name: "adamw, dense f32", optimizer: { name: "adamw" }, exchange: { dense: "f32" } },
  { name: "adamw, dense bf16", optimizer: { name: "adamw" }, exchange: { dense: "bf16" } },
  { name: "adamw, dense int8", optimizer: { name: "adamw" }, exchange: { dense: "int8" } },
  {
    name: "adamw, powersgd rank 4",
    optimizer: { name: "adamw" },
    exchange: { gradient: { name: "powersgd", matrixApproximationRank: 4 } },
  },
  { name: "adamw, terngrad", optimizer: { name: "adamw" }, exchange: { gradient: { name: "terngrad" } } },
  { name: "adamw, qsgd 4 bits", optimizer: { name: "adamw" }, exchange: { gradient: { name: "qsgd", bits: 4 } } },
  { name: "sgd, dgc 0.1%", optimizer: { name: "sgd" }, exchange: { gradient: { name: "dgc", ratio: 0.001 } } },
  ...(["all-to-all", "count", "parameter-server", "parameter-server-efficient", "hierarchical"] as const).map(
    (vote) => ({
      name: `lion-cub, 1 bit, ${vote}`,
      optimizer: { name: "lion-cub" },
      exchange: { vote },
    }),
  ),
  { name: "lion-cub, 8-bit sums", optimizer: { name: "lion-cub", sumBits: 8 } },
  { name: "distributed-lion", optimizer: { name: "distributed-lion" } },
  ...(["one-bit-adam", "one-bit-lamb", "zero-one-adam"] as const).map((name) => ({
    name,
    optimizer: { name, ...algorithms[name].afterWarmup },
  })),
  {
    name: "dion, rank 1/4",
    optimizer: { name: "dion", groups: adamwForVectors },
  },
  { name: "demo", optimizer: { name: "demo" } },
  {
    name: "adamw, every 10 steps 4 bits",
    optimizer: { name: "adamw" },
    exchange: fourBits,
    local: { syncEvery: 10, optimizer: mean },
  },
  {
    name: "muon, every 30 steps 4 bits",
    optimizer: { name: "muon", groups: adamwForVectors },
    exchange: fourBits,
    local: { syncEvery: 30, fragments: 3, delay: 1, optimizer: mean },
  },
  {
    name: "adamw, every 30 steps top-k 1/64",
    optimizer: { name: "adamw" },
    exchange: {
      gradient: { name: "codec", codec: "top-k", ratio: 1 / 64, indices: "elias-fano", values: "2bit" },
    },
    local: { syncEvery: 30, optimizer: mean },
  },
];

/**
 * The run's recipe with the candidate's method. Messages leave while backward runs wherever the method allows it.
 * `ranksPerHost`: for votes of hosts, where the recipe does not say it. Throws `OptionsError` where a run would refuse
 * it.
 */
export function recipeOfCandidate(
  recipe: Recipe,
  { optimizer, exchange = {}, local }: Candidate,
  ranksPerHost = recipe.exchange.ranksPerHost,
): Recipe {
  const { lr, clip, clipBy } = recipe.optimizer;
  const { bucket: _, local: __, ...rest } = recipe;
  const changed = parseOptions(
    recipeSchema,
    {
      ...rest,
      ...(local && { local: withWholeRounds(local, recipe.steps) }),
      overlap: recipe.overlap === "off" ? "off" : "auto",
      optimizer: { lr, clip, clipBy, ...optimizer },
      exchange: exchange["vote"] === "hierarchical" ? { ...exchange, ranksPerHost } : exchange,
      parallel: {},
    },
    "",
  );
  return checkedRecipe(changed);
}

/** What `plan` finds for each, and a line for each that cannot train the model, or not on so many ranks. */
export async function forEachCandidate<Row>(
  some: readonly Candidate[],
  plan: (candidate: Candidate) => Row | Promise<Row>,
): Promise<{ rows: Row[]; leftOut: string[] }> {
  const rows: Row[] = [];
  const leftOut: string[] = [];
  for (const candidate of some)
    try {
      rows.push(await plan(candidate));
    } catch (error) {
      if (!(error instanceof OptionsError || error instanceof RangeError)) throw error;
      leftOut.push(`${candidate.name} is left out: ${linesOfError(error).join("; ")}`);
    }
  return { rows, leftOut };
}

/** Fragments and a delay need a run of whole intervals; without them any run ends with a round. */
const withWholeRounds = (local: NonNullable<Candidate["local"]>, steps: number) =>
  steps % local.syncEvery === 0 ? local : { ...local, fragments: 1, delay: 0 };
