/**
 * Trainings of a row. Each is kept in runs/bench-papers as soon as it has ended, so that a row that is cut off goes on
 * where it was; a row that is complete forgets its own. Rows that are measured together share what they both train.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Run } from "../convergence/trainer.ts";
import { Trainers } from "../convergence/trainers.ts";
import { received, type Trained } from "../convergence/training.ts";

const folder = fileURLToPath(new URL("../../../../runs/bench-papers/", import.meta.url));

/** What this process has trained, by name. */
const trained = new Map<string, Trained>();

/** Trains what is not kept, several runs at once. */
export async function trainAll(row: string, runs: readonly Run[]): Promise<Trained[]> {
  mkdirSync(`${folder}${row}`, { recursive: true });
  await using trainers = await Trainers.open();
  return await Promise.all(
    runs.map(async (run) => {
      const name = nameOf(run);
      const file = `${folder}${row}/${name}.json`;
      if (existsSync(file)) return received(JSON.parse(readFileSync(file, "utf8")));
      const result = trained.get(name) ?? (await trainers.train(run));
      trained.set(name, result);
      writeFileSync(`${file}.partial`, JSON.stringify(result));
      renameSync(`${file}.partial`, file);
      return result;
    }),
  );
}

export function forgetKeptRuns(row: string): void {
  rmSync(`${folder}${row}`, { recursive: true, force: true });
}

const nameOf = ({ recipe, ...run }: Run): string =>
  createHash("sha256")
    .update(readFileSync(new URL(recipe)))
    .update(JSON.stringify(run))
    .digest("hex")
    .slice(0, 24);
