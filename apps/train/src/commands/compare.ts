/**
 * `./terse compare RUN…`: what runs, or those of sweeps, have reached, in how many steps, seconds and bytes, side by
 * side. Of three and more runs those that differ in their seed alone share a row.
 */
import { CheckpointError } from "@terse/checkpoint";
import { OptionsError, parseArguments, print, printableLine } from "@terse/options";
import { runNames } from "@terse/page/run-names";
import { bytesText, durationText } from "../format.ts";
import { readMetrics } from "../results/read-metrics.ts";
import { recipeOfRun } from "../results/recipe-of-run.ts";
import {
  differingKeys,
  groupsOf,
  jsonOf,
  lossText,
  meansOf,
  type RunFiles,
  type RunGroup,
  statisticOf,
  stepsText,
} from "../results/run-group.ts";
import type { RunResult } from "../results/run-result.ts";
import { textTable } from "../results/text-table.ts";
import { changesOf } from "../resumed-recipe.ts";
import { begunRuns, isSweep } from "../sweep/sweep-folder.ts";

/** Compares the runs that are there. Throws afterwards where one is not. */
export async function compareCommand(argv: readonly string[]): Promise<void> {
  const syntax = { command: "./terse compare", flags: { json: "switch" } as const };
  const { flags, words: given } = parseArguments(argv, syntax);
  if (given.length === 0) throw new OptionsError(["compare needs the folders of runs: ./terse compare runs/A runs/B"]);
  const problems: string[] = [];
  const absent: string[] = [];
  const orAbsent = async (read: () => void | Promise<void>) => {
    try {
      await read();
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      absent.push(error.message);
    }
  };
  const words: string[] = [];
  for (const word of given) await orAbsent(() => void words.push(...(isSweep(word) ? begunRuns(word) : [word])));
  const names = runNames(words);
  const runs: RunFiles[] = [];
  for (const [i, run] of words.entries())
    await orAbsent(async () => {
      const recipe = recipeOfRun(run);
      runs.push({ run: names[i]!, recipe, lines: await readMetrics(run, (problem) => problems.push(problem)) });
    });
  for (const problem of problems) print(problem, process.stderr); // not where --json is read
  if (runs.length === 0) throw new OptionsError(absent);
  print(words.length > 2 ? ofGroups(groupsOf(runs), flags) : ofRuns(runs, flags));
  if (absent.length > 0) throw new OptionsError(absent);
}

interface Form {
  readonly json?: true;
}

function ofRuns(runs: readonly RunFiles[], { json }: Form): string[] {
  const results = runs.flatMap((run) => groupsOf([run])[0]!.results);
  return json ? [JSON.stringify(results)] : [...tableOf(results), ...differences(runs)];
}

/** How each recipe differs from the first one. */
function differences(runs: readonly RunFiles[]): string[] {
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
  return textTable(
    [
      ["run", "method", "ranks", "steps", "loss", "validation", "best", "ms a step", "waiting", "time", "sent"],
      ...results.map((result) => [
        printableLine(result.run),
        result.method,
        shown(result.ranks, String),
        String(result.steps),
        shown(result.train, (loss) => loss.toFixed(4)),
        shown(result.validation, (loss) => loss.toFixed(4)),
        shown(result.best, (loss) => loss.toFixed(4)),
        ...costs(result),
      ]),
    ],
    2,
  );
}

type Costs = Pick<RunResult, "stepSeconds" | "exposed" | "seconds" | "bytes">;

const costs = ({ stepSeconds, exposed, seconds, bytes }: Costs): string[] => [
  shown(stepSeconds, (seconds) => (1000 * seconds).toFixed(0)),
  shown(exposed, (share) => `${Math.round(100 * share)}%`),
  shown(seconds, durationText),
  shown(bytes, (bytes) => bytesText(Math.round(bytes))),
];

const shown = <T>(value: T | undefined, text: (value: T) => string) => (value === undefined ? "–" : text(value));

/** A row for each group, and below the table its runs, and what of its recipe is not the same in all. */
function ofGroups(groups: readonly RunGroup[], { json }: Form): string[] {
  const keys = differingKeys(groups);
  if (json) return [JSON.stringify(groups.map((group, i) => jsonOf(group, keys[i]!)))];
  const rows = groups.map((group, i) => [
    letterOf(i),
    group.results[0]!.method,
    String(group.runs.length),
    shown(group.results[0]!.ranks, String),
    stepsText(group),
    ...(["train", "validation", "best"] as const).map((loss) => lossText(statisticOf(group, loss))),
    ...costs(meansOf(group)),
  ]);
  const heads = ["", "method", "runs", "ranks", "steps", "loss", "validation", "best"];
  const below = groups.flatMap(({ runs }, i) => {
    const own = [...keys[i]!].map(([key, value]) => `${key}=${value}`);
    return [
      printableLine(`${letterOf(i)}: ${runs.map(({ run }) => run).join(", ")}`),
      ...(own.length > 0 ? [printableLine(`  ${own.join("  ")}`)] : []),
      ...ofOneSeed(runs).map((same) => printableLine(`  the same seed, so ± is too small: ${same.join(", ")}`)),
    ];
  });
  return [...textTable([[...heads, "ms a step", "waiting", "time", "sent"], ...rows], 2), ...below];
}

/** The names of runs that are one run, taken more than once. */
const ofOneSeed = (runs: readonly RunFiles[]): string[][] =>
  [...Map.groupBy(runs, ({ recipe }) => recipe.seed).values()]
    .filter((same) => same.length > 1)
    .map((same) => same.map(({ run }) => run));

/** A, B, …, Z, AA, AB, … */
function letterOf(i: number): string {
  const rest = Math.floor(i / 26);
  return `${rest > 0 ? letterOf(rest - 1) : ""}${String.fromCharCode(65 + (i % 26))}`;
}
