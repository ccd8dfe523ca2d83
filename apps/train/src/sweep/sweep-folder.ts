/**
 * The folder of a sweep:
 *
 *   plan.json           all runs, and the command line that they share
 *   base-recipe.json    the recipe as it was when the sweep began, with those that it extends
 *   ended.jsonl         how each run ended: a line when it does
 *   NAME/  NAME.log     a run's folder, and what the run has printed
 *   table.txt loss.svg  what all runs have reached
 *   lock.json           who runs it, while somebody does
 */
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  atomicWriteText,
  CheckpointError,
  isObject,
  makeFolder,
  mayExist,
  parsedJson,
  readRegularText,
  reasonOf,
} from "@terse/checkpoint";
import { OptionsError } from "@terse/options";
import type { Tree } from "../recipe-tree.ts";
import { lockFile } from "../saves/folder-lock.ts";
import { newFolder } from "../saves/new-folder.ts";
import { quotedForShell } from "../saves/resume-command.ts";
import type { SweepPlan } from "./sweep-plan.ts";

const planFile = "plan.json";
export const baseRecipeFile = "base-recipe.json";
const endedFile = "ended.jsonl";
const mostBytes = 1 << 26;

/** How a run ended. */
export interface EndedRun {
  readonly run: string;
  readonly code: number;
  readonly seconds: number;
}

export const endedPath = (folder: string): string => join(folder, endedFile);

/** Makes the folder of a new sweep: an empty one, or that of a sweep. Throws `CheckpointError`. */
export function claimSweepFolder(out: string | undefined, recipe: string): string {
  if (out === undefined) return newFolder("sweep-", recipe);
  const folder = resolve(out);
  makeFolder(folder);
  if (!isSweep(folder) && readdirSync(folder).some((name) => name !== lockFile))
    throw new CheckpointError(
      `${folder} is not empty, and a sweep needs its own folder: choose another --out, or continue the sweep in it with --resume`,
    );
  return folder;
}

/** Writes the plan. Where the folder has one, it must be of the same sweep, with as many runs or fewer. */
export async function keepPlan(folder: string, plan: SweepPlan, base: Tree): Promise<void> {
  const changed = isSweep(folder) ? changeOf(readPlan(folder), plan, readBase(folder), base) : undefined;
  if (changed !== undefined)
    throw new OptionsError([
      `--out: ${folder} has a sweep with other ${changed}: choose another folder, or continue that sweep: ./terse sweep --resume ${quotedForShell(folder)}`,
    ]);
  await atomicWriteText(join(folder, baseRecipeFile), `${JSON.stringify(base, undefined, 2)}\n`);
  await atomicWriteText(join(folder, planFile), `${JSON.stringify(plan, undefined, 2)}\n`);
}

/** What of the old sweep the new one does not keep. Runs may be added. */
function changeOf(old: SweepPlan, plan: SweepPlan, oldBase: Tree, base: Tree): string | undefined {
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  if (!same(oldBase, base)) return "recipe";
  if (!same(old.flags, plan.flags) || old.ranks !== plan.ranks) return "flags";
  const isInBoth = (each: string) => old.overrides.includes(each) && plan.overrides.includes(each);
  const others = [...old.overrides, ...plan.overrides].filter((each) => !isInBoth(each));
  const keys = new Set(others.map((each) => each.replace(/^--/, "").split("=")[0]));
  if (keys.size > 0) return `values of ${[...keys].join(", ")}, which ${keys.size === 1 ? "is" : "are"} not swept`;
  const now = new Map(plan.runs.map((run) => [run.name, JSON.stringify(run)]));
  return old.runs.every((run) => now.get(run.name) === JSON.stringify(run)) ? undefined : "runs";
}

/** The plan of a sweep's folder. Throws `CheckpointError`. */
export function readPlan(folder: string): SweepPlan {
  const path = join(folder, planFile);
  const plan = readJson(path, `${folder} has no ${planFile}: name the folder of a sweep`) as Partial<SweepPlan>;
  const isList = (value: unknown) => Array.isArray(value) && value.every((each) => typeof each === "string");
  const isRun = (run: unknown) =>
    isObject(run) && /^[\w.+-]+$/.test(String(run["name"])) && Number.isInteger(run["seed"]) && isObject(run["values"]);
  const isRight =
    plan.format === 1 &&
    isList(plan.flags) &&
    isList(plan.overrides) &&
    isList(plan.keys) &&
    Number.isInteger(plan.ranks) &&
    typeof plan.directory === "string" &&
    typeof plan.recipe === "string" &&
    Array.isArray(plan.runs) &&
    plan.runs.every(isRun);
  if (!isRight) throw new CheckpointError(`${path} is no plan of a sweep by this version of terse.`);
  return plan as SweepPlan;
}

/** Whether a folder is that of a sweep. */
export const isSweep = (folder: string): boolean => mayExist(join(folder, planFile));

/** The folders of a sweep's runs that have written something. Throws `CheckpointError` where there is none. */
export function begunRuns(folder: string): string[] {
  const all = readPlan(folder).runs.map(({ name }) => join(folder, name));
  const begun = all.filter((run) => mayExist(join(run, "metrics.jsonl")));
  if (begun.length === 0) throw new CheckpointError(`no run of the sweep ${folder} has taken a step yet`);
  return begun;
}

const readBase = (folder: string): Tree => {
  const path = join(folder, baseRecipeFile);
  return readJson(path, `${folder} has no ${baseRecipeFile}, so its sweep cannot go on`);
};

function readJson(path: string, absent: string): Tree {
  if (!mayExist(path)) throw new CheckpointError(absent);
  const value: unknown = reading(path, (text) => JSON.parse(text));
  if (isObject(value)) return value;
  throw new CheckpointError(`${path}: expected an object.`);
}

/** What `parse` makes of the text of a file. Throws `CheckpointError`. */
function reading<T>(path: string, parse: (text: string) => T): T {
  try {
    return parse(readRegularText(path, mostBytes));
  } catch (error) {
    throw new CheckpointError(`Cannot read ${path}: ${reasonOf(error) ?? (error as Error).message}.`, { cause: error });
  }
}

/** The names of the runs that have ended well, and whose files are there. */
export function finishedRuns(folder: string): Set<string> {
  const path = endedPath(folder);
  const lines = mayExist(path) ? reading(path, (text) => text.split("\n")) : [];
  const ended = lines.map((line) => parsedJson(line) as EndedRun | undefined); // the last line may be cut short
  const isThere = (run: string) => mayExist(join(folder, run, "metrics.jsonl"));
  return new Set(ended.flatMap((end) => (end?.code === 0 && isThere(end.run) ? [end.run] : [])));
}
