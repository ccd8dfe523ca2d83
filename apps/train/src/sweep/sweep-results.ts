/** What the runs of a sweep have reached: a table, a picture, and the same as JSON. */
import { join } from "node:path";
import { CheckpointError, mayExist } from "@terse/checkpoint";
import { parseYamlValue, printableLine } from "@terse/options";
import { type Axis, bandCurves } from "@terse/pictures/band-curves";
import { spreadOf } from "@terse/pictures/spread";
import { amountText, bytesText, durationText } from "../format.ts";
import { type Line, numberAt } from "../monitoring/numbers-of.ts";
import { methodName } from "../parameter-groups.ts";
import { readMetrics } from "../results/read-metrics.ts";
import { recipeOfRun } from "../results/recipe-of-run.ts";
import { jsonOf, lossText, type RunGroup, statisticOf, stepsText } from "../results/run-group.ts";
import { resultOf } from "../results/run-result.ts";
import { textTable } from "../results/text-table.ts";
import { combinationText, labelsOf, type PlannedRun, type SweepPlan } from "./sweep-plan.ts";

/** The runs of one combination that have written something. */
export interface Combination extends RunGroup {
  readonly planned: readonly PlannedRun[];
  /** Those of the runs that are there. */
  readonly finished: number;
}

/** The best combination first; those without all their runs are last. `report`: a sentence about a finished run without results. */
export async function resultsOf(
  folder: string,
  plan: SweepPlan,
  finished: ReadonlySet<string>,
  report: (problem: string) => void,
): Promise<Combination[]> {
  const combinations: Combination[] = [];
  for (const planned of Map.groupBy(plan.runs, combinationText).values()) {
    const there = planned.filter(({ name }) => mayExist(join(folder, name, "metrics.jsonl")));
    const read = await Promise.all(
      there.map(({ name }) => readRun(folder, name, finished.has(name) ? report : () => {})),
    );
    const runs = read.filter((run) => run !== undefined);
    const results = runs.map(({ run, recipe, lines }) => resultOf(run, methodName(recipe), lines));
    combinations.push({ planned, runs, results, finished: planned.filter(({ name }) => finished.has(name)).length });
  }
  const loss = (group: Combination) => {
    const { mean } = lossOf(group) ?? { mean: Number.NaN };
    return Number.isNaN(mean) ? Number.POSITIVE_INFINITY : mean;
  };
  // What only some runs have reached is no mean over the seeds: those that have failed may have the highest losses.
  const lacksRuns = ({ finished, planned }: Combination) => Number(finished < planned.length);
  return combinations.toSorted(
    (a, b) => lacksRuns(a) - lacksRuns(b) || (loss(a) < loss(b) ? -1 : Number(loss(a) > loss(b))),
  );
}

/** Undefined for a run that failed before its first line. */
async function readRun(folder: string, run: string, report: (problem: string) => void) {
  try {
    return { run, recipe: recipeOfRun(join(folder, run)), lines: await readMetrics(join(folder, run)) };
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    report(error.message);
    return undefined;
  }
}

/** By which combinations are sorted: the validation loss, or the training loss where nothing is held out. */
const lossOf = (group: RunGroup) => statisticOf(group, "validation") ?? statisticOf(group, "train");

export function sweepTable(plan: SweepPlan, combinations: readonly Combination[]): string[] {
  const labels = labelsOf(plan.keys);
  const rows = combinations.map((group) => {
    const { values } = group.planned[0]!;
    const [time, sent] = [statisticOf(group, "seconds")?.mean, statisticOf(group, "bytes")?.mean];
    const { finished, planned } = group;
    return [
      ...plan.keys.map((key) => printableLine(values[key]!)),
      finished === planned.length ? String(finished) : `${finished} of ${planned.length}`,
      group.results.length === 0 ? "–" : stepsText(group),
      ...(["validation", "best", "train"] as const).map((loss) => lossText(statisticOf(group, loss))),
      sent === undefined ? "–" : bytesText(Math.round(sent)),
      time === undefined ? "–" : durationText(time),
    ];
  });
  const heads = ["runs", "steps", "validation", "best", "loss", "sent", "time"];
  return textTable([[...plan.keys.map((key) => labels.get(key)!), ...heads], ...rows], plan.keys.length);
}

export function sweepJson(plan: SweepPlan, combinations: readonly Combination[]): string {
  const ofAll = combinations.map((group) => {
    const values = plan.keys.map((key) => [key, JSON.stringify(parseYamlValue(group.planned[0]!.values[key]!, key))]);
    const planned = group.planned.map(({ name }) => name);
    return { ...jsonOf(group, new Map(values as [string, string][])), planned, finished: group.finished };
  });
  return JSON.stringify(ofAll);
}

interface LossCurve {
  readonly text: string;
  readonly points: readonly { step: number; mean: number; least: number; most: number }[];
  readonly runs: readonly (readonly Line[])[];
}

/** The losses by steps, by bytes and by seconds, seeds in bands. Undefined where no run has a loss. */
export function sweepPicture(plan: SweepPlan, combinations: readonly Combination[]): string | undefined {
  const held = combinations.some(({ results }) => results.some(({ validation }) => validation !== undefined));
  const key = held ? "val/loss" : "train/loss";
  const curves = combinations.flatMap((group): LossCurve[] => {
    const runs = group.runs.map(({ lines }) => lines);
    const points = pointsOf(runs, key);
    if (points.length === 0) return [];
    return [{ text: `${textOf(plan, group)}: ${lossText(lossOf(group))}`, points, runs }];
  });
  const bytes = (value: number) => bytesText(value).replace(/\.0+ /, " ");
  const axes = [
    { label: "steps", logarithmic: false, at: (_: LossCurve, step: number) => step, text: String },
    along(curves, "total_bytes", { label: "bytes that rank 0 has sent", text: bytes }),
    along(curves, "elapsed_seconds", { label: "seconds", text: (seconds) => `${seconds} s` }),
  ];
  const drawn = axes.filter((axis) =>
    curves.some((curve) => curve.points.some(({ step }) => (axis.at(curve, step) ?? 0) > 0)),
  );
  const seeds = new Set(plan.runs.map(({ seed }) => seed)).size;
  const title = `${plan.recipe}, ${amountText(plan.ranks, "rank")}, ${amountText(seeds, "seed")}`;
  const what = held ? "Validation loss" : "Training loss";
  return bandCurves(curves, drawn, { title: `${what}: ${title}`, label: what.toLowerCase() });
}

/** "lion-cub, lr 1e-3" */
function textOf(plan: SweepPlan, { planned }: Combination): string {
  const labels = labelsOf(plan.keys);
  const values = plan.keys.map((key) => {
    const [label, value] = [labels.get(key)!, planned[0]!.values[key]!];
    return label === "name" ? value : `${label} ${value}`;
  });
  return printableLine(values.join(", ") || plan.recipe);
}

/** After how many steps a line's loss was taken: a validation comes after `step` steps, a training loss in the step. */
const stepsBefore = (line: Line, key: string) => (key === "val/loss" ? line.step : line.step + 1);

function pointsOf(runs: readonly (readonly Line[])[], key: string): LossCurve["points"] {
  const losses = new Map<number, number[]>();
  for (const lines of runs) {
    const own = new Map<number, number>(); // the last one of a step
    for (const line of lines) {
      const loss = numberAt(line, key);
      if (loss !== undefined && Number.isFinite(loss)) own.set(stepsBefore(line, key), loss);
    }
    for (const [step, loss] of own) losses.set(step, [...(losses.get(step) ?? []), loss]);
  }
  return [...losses].sort(([a], [b]) => a - b).map(([step, values]) => ({ step, ...spreadOf(values) }));
}

/**
 * What a sum of the lines was after so many steps, a mean over the runs. Between two lines it grows evenly. The axis is
 * logarithmic where the curves end far apart.
 */
function along(
  curves: readonly LossCurve[],
  key: string,
  { label, text }: Pick<Axis<LossCurve>, "label" | "text">,
): Axis<LossCurve> {
  const sums = new Map(curves.flatMap(({ runs }) => runs).map((lines) => [lines, sumsOf(lines, key)]));
  const at = ({ runs }: LossCurve, step: number) => {
    const values = runs.map((lines) => sumAfter(sums.get(lines)!, step)).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : spreadOf(values).mean;
  };
  const ends = curves.map((curve) => at(curve, curve.points.at(-1)!.step) ?? 0).filter((end) => end > 0);
  const logarithmic = Math.max(...ends) > 10 * Math.min(...ends);
  return { label: logarithmic ? `${label}, logarithmic` : label, logarithmic, at, text };
}

type Sums = readonly (readonly [steps: number, sum: number])[];

function sumsOf(lines: readonly Line[], key: string): Sums {
  const found = lines.flatMap((line): (readonly [number, number])[] => {
    const sum = numberAt(line, key);
    return sum === undefined || !Number.isFinite(sum) ? [] : [[line.step + 1, sum]];
  });
  return [[0, 0], ...found];
}

/** Undefined after the last line. */
function sumAfter(sums: Sums, step: number): number | undefined {
  const next = sums.findIndex(([steps]) => steps >= step);
  if (next < 0) return undefined;
  const [[to, sum], [from, before]] = [sums[next]!, sums[Math.max(0, next - 1)]!];
  return to === from ? sum : before + ((sum - before) * (step - from)) / (to - from);
}
