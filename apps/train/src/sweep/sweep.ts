/** `./terse sweep`: every combination of values and seeds, each a run, and what they have reached. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { atomicWriteText } from "@terse/checkpoint";
import { OptionsError, parseYamlValue, print } from "@terse/options";
import { sentence } from "../failure.ts";
import { amountText, bytesText } from "../format.ts";
import { defaultRecipe } from "../recipe.ts";
import { readTree } from "../recipe-tree.ts";
import { lockFolder } from "../saves/folder-lock.ts";
import { quotedForShell } from "../saves/resume-command.ts";
import { type CheckedRuns, checkRuns } from "./check-runs.ts";
import { defaultJobs, thisMachine, threadsOf } from "./jobs.ts";
import { runSweep } from "./run-sweep.ts";
import type { SweepArguments } from "./sweep-arguments.ts";
import { baseRecipeFile, claimSweepFolder, finishedRuns, keepPlan, readPlan } from "./sweep-folder.ts";
import { combinationsOf, combinationText, plannedRuns, type SweepPlan } from "./sweep-plan.ts";
import { resultsOf, sweepJson, sweepPicture, sweepTable } from "./sweep-results.ts";

/** Resolves to the exit code: 1 where a run failed, or the table could not be written. */
export async function sweep(args: SweepArguments): Promise<number> {
  const here = process.cwd();
  const resumed = args.resume === undefined ? undefined : resolve(args.resume);
  const shown = (folder: string) => (relative(here, folder).startsWith("..") ? folder : relative(here, folder) || ".");
  const plan = resumed === undefined ? newPlan(args) : readPlan(resumed);
  if (existsSync(plan.directory)) process.chdir(plan.directory); // paths of the recipe and of flags belong there
  const recipe = resumed === undefined ? args.recipe : join(resumed, baseRecipeFile);
  const checked = await checkRuns(recipe, plan, resumed);
  const machine = thisMachine();
  const hasGpu = [...checked.recipes.values()].some(({ device }) => device !== "cpu");
  const jobs = Math.min(
    plan.runs.length,
    args.jobs ?? defaultJobs({ ranks: plan.ranks, bytesPerRank: checked.bytesPerRank, hasGpu }, machine),
  );
  if (args.dryRun) {
    print([...planText(plan, checked, jobs), ...namesOf(plan, resumed)]);
    return 0;
  }
  const folder = resumed ?? claimSweepFolder(args.out, plan.recipe);
  const out = args.json ? process.stderr : process.stdout;
  using _ = await lockFolder(folder, { start: randomBytes(8).toString("hex"), rank: 0 }, (why) =>
    print(why, process.stderr),
  );
  if (resumed === undefined) await keepPlan(folder, plan, readTree(args.recipe ?? defaultRecipe).tree);
  print([...planText(plan, checked, jobs), `sweep ${folder}`], out);
  const threads = threadsOf(jobs, plan.ranks, machine);
  const { failed, interrupted } = await runSweep(folder, plan, { jobs, threads, out });

  const combinations = await resultsOf(folder, plan, finishedRuns(folder), (why) => print(why, process.stderr));
  const table = sweepTable(plan, combinations);
  const picture = sweepPicture(plan, combinations);
  print(["", ...table], out);
  if (args.json) print(sweepJson(plan, combinations));
  const unwritten = await write(folder, table, picture);
  if (picture !== undefined && unwritten === undefined)
    print(`losses by steps, bytes and seconds: ${join(folder, "loss.svg")}`, out);
  for (const { run, code } of failed)
    print(`failed: ${run.name}, exit code ${code}: see ${run.name}.log`, process.stderr);
  if (unwritten !== undefined) print(`error: ${unwritten}`, process.stderr);
  const isDone = failed.length === 0 && unwritten === undefined;
  if (interrupted !== undefined || !isDone)
    process.stderr.write(`resume: ./terse sweep --resume ${quotedForShell(shown(folder))}\n`);
  return interrupted ?? (isDone ? 0 : 1);
}

/** Writes the table and the picture. Resolves to why they could not be written. */
async function write(folder: string, table: readonly string[], picture?: string): Promise<string | undefined> {
  try {
    await atomicWriteText(join(folder, "table.txt"), `${table.join("\n")}\n`);
    if (picture !== undefined) await atomicWriteText(join(folder, "loss.svg"), picture);
    return undefined;
  } catch (error) {
    return sentence(error);
  }
}

/** The plan that the command line asks for. Throws `OptionsError`. */
function newPlan({ recipe, given, seeds, ranks, flags }: SweepArguments): SweepPlan {
  const { fixed, swept } = combinationsOf(given);
  const { tree } = readTree(recipe ?? defaultRecipe);
  const isSeed = (override: string) => override.startsWith("seed=");
  const named = swept.get("seed") ?? fixed.filter(isSeed).map((override) => override.slice("seed=".length));
  const known = named.length > 0 ? named.map((text) => parseYamlValue(text, "seed")) : [tree["seed"] ?? 0];
  if (!known.every((seed) => Number.isSafeInteger(seed) && (seed as number) >= 0))
    throw new OptionsError([`seed: expected whole numbers ≥ 0, got ${known.join(", ")}`]);
  const [first, ...more] = known as [number, ...number[]];
  const others = new Map([...swept].filter(([key]) => key !== "seed"));
  return {
    format: 1,
    recipe: recipe ?? "gpt-small",
    directory: process.cwd(),
    ranks,
    flags,
    overrides: fixed.filter((override) => !isSeed(override)),
    keys: [...others.keys()],
    runs: plannedRuns(
      others,
      more.length > 0 ? [first, ...more] : Array.from({ length: seeds ?? 1 }, (_, i) => first + i),
    ),
  };
}

/** The lines that a user reads before the first run. */
function planText(plan: SweepPlan, { bytesPerRank }: CheckedRuns, jobs: number): string[] {
  const combinations = new Set(plan.runs.map(combinationText)).size;
  const seeds = plan.runs.length / combinations;
  return [
    `sweep of ${plan.recipe}: ${amountText(plan.runs.length, "run")} (${amountText(combinations, "combination")}, ${amountText(seeds, "seed")}), ${amountText(plan.ranks, "rank")} each, ${jobs} at once`,
    `memory of a rank, without activations: at most ${bytesText(bytesPerRank)}`,
  ];
}

/** A line for each run. */
function namesOf(plan: SweepPlan, folder: string | undefined): string[] {
  const finished = folder === undefined ? new Set<string>() : finishedRuns(folder);
  const width = Math.max(...plan.runs.map(({ name }) => name.length));
  return plan.runs.map((run) => {
    const state = finished.has(run.name) ? "  has ended" : "";
    return `  ${run.name.padEnd(width)}  ${[combinationText(run), `seed=${run.seed}`].join(" ").trim()}${state}`;
  });
}
