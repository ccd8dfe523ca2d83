/**
 * Trainings of a setting of a suite. Each is kept in runs/bench as soon as it has ended, so that a setting that is cut
 * off goes on where it was. A setting that is complete forgets its own.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readRecipe } from "@terse/train/recipe";
import { received, type Trained } from "./convergence/training.ts";

const folder = fileURLToPath(new URL("../../../runs/bench/", import.meta.url));

/** What this process has trained, by name: settings that are measured together share what they both train. */
const trained = new Map<string, Trained>();

/** What decides about a training: its recipe, with overrides, and all else that its process is told. */
interface Described {
  readonly recipe: string; // address of its file
  readonly overrides: readonly string[];
}

/**
 * The kept result of a training; else that of `train`, which is kept for `setting`, such as "papers/lion-cub-figure-3".
 * Nothing is kept without a setting.
 */
export async function keptRun(
  setting: string | undefined,
  run: Described,
  train: () => Promise<Trained>,
): Promise<Trained> {
  if (setting === undefined) return await train();
  const name = nameOf(run);
  const file = `${folder}${setting}/${name}.json`;
  if (existsSync(file)) return received(JSON.parse(readFileSync(file, "utf8")));
  const result = trained.get(name) ?? (await train());
  trained.set(name, result);
  mkdirSync(`${folder}${setting}`, { recursive: true });
  writeFileSync(`${file}.partial`, JSON.stringify(result));
  renameSync(`${file}.partial`, file);
  return result;
}

export function forgetKeptRuns(setting: string): void {
  rmSync(`${folder}${setting}`, { recursive: true, force: true });
}

/** The same for recipes that say the same, wherever their files are. */
const nameOf = ({ recipe, overrides, ...run }: Described): string =>
  createHash("sha256")
    .update(JSON.stringify([readRecipe(recipe, overrides), run]))
    .digest("hex")
    .slice(0, 24);
