/** Runs whose recipes differ in their seed alone, and what such runs have reached together. */
import { deviationOf, spreadOf } from "@terse/pictures/spread";
import type { Line } from "../monitoring/numbers-of.ts";
import { methodName } from "../parameter-groups.ts";
import type { Recipe } from "../recipe.ts";
import { leavesOf } from "../recipe-tree.ts";
import { type RunResult, resultOf } from "./run-result.ts";

/** A run as its files say. */
export interface RunFiles {
  readonly run: string; // its name
  readonly recipe: Recipe;
  readonly lines: readonly Line[];
}

export interface RunGroup {
  readonly runs: readonly RunFiles[];
  readonly results: readonly RunResult[];
}

/** The groups in the order of their first runs. Runs with other numbers of ranks are no seeds of one another. */
export function groupsOf(runs: readonly RunFiles[]): RunGroup[] {
  const all = runs.map((files) => ({
    files,
    result: resultOf(files.run, methodName(files.recipe), files.lines),
  }));
  const groups = Map.groupBy(all, ({ files, result }) =>
    JSON.stringify([result.ranks, [...valuesOf(files.recipe)].toSorted()]),
  );
  return [...groups.values()].map((same) => ({
    runs: same.map(({ files }) => files),
    results: same.map(({ result }) => result),
  }));
}

/** A recipe without its seed: values, as JSON, by dotted keys. Lists count as values. */
function valuesOf(recipe: Recipe): Map<string, string> {
  const { seed: _, ...others } = recipe;
  const values = leavesOf(others).filter(([, value]) => value !== undefined);
  return new Map(values.map(([key, value]) => [key, JSON.stringify(value)]));
}

/** What only some recipes of the groups have: values, as JSON, by dotted keys, for each group. */
export function differingKeys(groups: readonly RunGroup[]): Map<string, string>[] {
  const all = groups.map(({ runs }) => valuesOf(runs[0]!.recipe));
  const keys = new Set(all.flatMap((values) => [...values.keys()]));
  const differ = [...keys].filter((key) => new Set(all.map((values) => values.get(key))).size > 1);
  return all.map(
    (values) =>
      new Map(differ.flatMap((key): [string, string][] => (values.has(key) ? [[key, values.get(key)!]] : []))),
  );
}

/** Over the runs of a group. */
export interface Statistic {
  readonly mean: number;
  /** The standard deviation, with n − 1; undefined of one run. */
  readonly deviation: number | undefined;
}

/** Undefined where no run has the quantity. */
export function statisticOf(
  { results }: Pick<RunGroup, "results">,
  quantity: Exclude<keyof RunResult, "run" | "method">,
): Statistic | undefined {
  const values = results.map((result) => result[quantity]).filter((value) => value !== undefined);
  return values.length === 0 ? undefined : { mean: spreadOf(values).mean, deviation: deviationOf(values) };
}

/** "1.5432 ± 0.0021"; of one run "1.5432". */
export function lossText(loss: Statistic | undefined): string {
  if (loss === undefined) return "–";
  const { mean, deviation } = loss;
  return deviation === undefined || Number.isNaN(mean)
    ? mean.toFixed(4)
    : `${mean.toFixed(4)} ± ${deviation.toFixed(4)}`;
}

/** "500", or "120 to 500" where runs have taken different numbers of steps. */
export function stepsText({ results }: Pick<RunGroup, "results">): string {
  const { least, most } = spreadOf(results.map(({ steps }) => steps));
  return least === most ? String(most) : `${least} to ${most}`;
}

const quantities = [
  "ranks",
  "steps",
  "train",
  "validation",
  "best",
  "stepSeconds",
  "exposed",
  "seconds",
  "bytes",
] as const;

export type Means = { readonly [Quantity in (typeof quantities)[number]]: number | undefined };

export function meansOf(group: RunGroup): Means {
  const means = quantities.map((quantity) => [quantity, statisticOf(group, quantity)?.mean] as const);
  return Object.fromEntries(means) as Means;
}

/** A group as a run has it, with means for values. `keys`: what differs, values as JSON. */
export function jsonOf(group: RunGroup, keys: ReadonlyMap<string, string>) {
  const deviations = quantities.map((quantity) => [quantity, statisticOf(group, quantity)?.deviation] as const);
  const names = group.runs.map(({ run }) => run);
  return {
    run: names.join(", "),
    runs: names,
    seeds: group.runs.map(({ recipe }) => recipe.seed),
    method: group.results[0]?.method,
    ...meansOf(group),
    deviations: Object.fromEntries(deviations),
    differs: Object.fromEntries([...keys].map(([key, value]) => [key, JSON.parse(value) as unknown])),
  };
}
