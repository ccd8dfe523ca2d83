/** `./terse compare RUN…`: what runs have reached, in how many steps, seconds and bytes, side by side. */
import { CheckpointError } from "@terse/checkpoint";
import { OptionsError, parseArguments, print, printableLine } from "@terse/options";
import { runNames } from "@terse/page/run-names";
import { readMetrics } from "../advice/read-metrics.ts";
import { bytesText, durationText } from "../format.ts";
import { type Line, numberAt } from "../monitoring/numbers-of.ts";
import { methodName } from "../parameter-groups.ts";
import type { Recipe } from "../recipe.ts";
import { changesOf } from "../resumed-recipe.ts";
import { recipeOfRun } from "./recipe-of-run.ts";

/** What one run has reached. */
export interface RunResult {
  readonly run: string;
  readonly method: string;
  readonly ranks: number | undefined;
  readonly steps: number;
  readonly train: number | undefined; // the last loss
  readonly validation: number | undefined; // the last one
  readonly stepSeconds: number | undefined; // mean
  readonly exposed: number | undefined; // share of the time
  readonly seconds: number | undefined; // of all steps
  readonly bytes: number | undefined; // sent by rank 0 in all steps
}

export function resultOf(run: string, method: string, lines: readonly Line[]): RunResult {
  const last = (key: string) => lines.map((line) => numberAt(line, key)).findLast((value) => value !== undefined);
  const lastSum = (key: string) => lines.map((line) => numberAt(line, key)).findLast(Number.isFinite);
  const waits = lines.map((line) => numberAt(line, "exposed_fraction"));
  const steps = 1 + lines.reduce((most, { step }, i) => (waits[i] === undefined ? most : Math.max(most, step)), -1);
  const exposed = waits.filter((share): share is number => Number.isFinite(share));
  const seconds = lastSum("elapsed_seconds");
  const ranks = lines.map((line) => line["ranks/compute_seconds"]).findLast(Array.isArray);
  return {
    run,
    method,
    ranks: ranks?.length,
    steps,
    train: last("train/loss"),
    validation: last("val/loss"),
    stepSeconds: seconds === undefined || steps === 0 ? lastSum("step_seconds") : seconds / steps,
    exposed: exposed.length === 0 ? undefined : exposed.reduce((sum, share) => sum + share, 0) / exposed.length,
    seconds,
    bytes: lastSum("total_bytes"),
  };
}

/** Compares the runs that are there. Throws afterwards where one is not. */
export async function compareCommand(argv: readonly string[]): Promise<void> {
  const syntax = { command: "./terse compare", flags: { json: "switch" } as const };
  const { flags, words } = parseArguments(argv, syntax);
  if (words.length === 0) throw new OptionsError(["compare needs the folders of runs: ./terse compare runs/A runs/B"]);
  const names = runNames(words);
  const problems: string[] = [];
  const absent: string[] = [];
  const runs: { run: string; recipe: Recipe; lines: Line[] }[] = [];
  for (const [i, run] of words.entries())
    try {
      const recipe = recipeOfRun(run);
      runs.push({ run: names[i]!, recipe, lines: await readMetrics(run, (problem) => problems.push(problem)) });
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      absent.push(error.message);
    }
  for (const problem of problems) print(problem, process.stderr); // not where --json is read
  if (runs.length === 0) throw new CheckpointError(absent.join("\n"));
  const results = runs.map(({ run, recipe, lines }) => resultOf(run, methodName(recipe), lines));
  const text = flags.json ? JSON.stringify(results) : [...tableOf(results), ...differences(runs)].join("\n");
  print(text);
  if (absent.length > 0) throw new CheckpointError(absent.join("\n"));
}

/** How each recipe differs from the first one. */
function differences(runs: readonly { run: string; recipe: unknown }[]): string[] {
  const [first, ...others] = runs;
  return others.flatMap(({ run, recipe }) => {
    const changes = changesOf(first!.recipe, recipe);
    const same = changes.length === 0 ? " the same recipe" : "";
    return [
      `${printableLine(`${run}, compared with ${first!.run}`)}:${same}`,
      ...changes.map((change) => `  ${change}`),
    ];
  });
}

/** A row for each run under a row of headings; numbers end in one column. */
export function tableOf(results: readonly RunResult[]): string[] {
  const shown = <T>(value: T | undefined, text: (value: T) => string) => (value === undefined ? "–" : text(value));
  const rows = [
    ["run", "method", "ranks", "steps", "loss", "validation", "ms a step", "waiting", "time", "sent"],
    ...results.map((result) => [
      printableLine(result.run),
      result.method,
      shown(result.ranks, String),
      String(result.steps),
      shown(result.train, (loss) => loss.toFixed(4)),
      shown(result.validation, (loss) => loss.toFixed(4)),
      shown(result.stepSeconds, (seconds) => (1000 * seconds).toFixed(0)),
      shown(result.exposed, (share) => `${Math.round(100 * share)}%`),
      shown(result.seconds, durationText),
      shown(result.bytes, bytesText),
    ]),
  ];
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows.map((row) =>
    row
      .map((cell, i) => (i < 2 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join("  ")
      .trimEnd(),
  );
}
