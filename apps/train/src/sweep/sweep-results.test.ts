import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readRecipe } from "../recipe.ts";
import { plannedRuns, type SweepPlan } from "./sweep-plan.ts";
import { resultsOf, sweepJson, sweepPicture, sweepTable } from "./sweep-results.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-sweep-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

let reported: string[] = [];
const report = (problem: string) => reported.push(problem);
beforeEach(() => {
  reported = [];
});

const plan: SweepPlan = {
  format: 1,
  recipe: "gpt-small",
  directory: "/",
  ranks: 2,
  flags: [],
  overrides: [],
  keys: ["optimizer.lr"],
  runs: plannedRuns(new Map([["optimizer.lr", ["1", "2", "3"]]]), [0, 1]),
};

function write(name: string, losses: readonly number[], bytes: number): void {
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, "recipe.json"), JSON.stringify(readRecipe("gpt-small", [])));
  const lines = losses.flatMap((loss, i) => [
    { step: 10 * i, "val/loss": loss },
    {
      step: 10 * i + 9,
      "train/loss": 1,
      exposed_fraction: 0,
      elapsed_seconds: 5 * (i + 1),
      total_bytes: bytes * (i + 1),
    },
  ]);
  writeFileSync(join(folder, name, "metrics.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

it("sorts combinations by the mean of the last loss, with the deviation over the seeds; those without all their runs are last", async () => {
  write("lr-1-seed-0", [9, 4], 1000);
  write("lr-1-seed-1", [9, 6], 3000);
  write("lr-2-seed-0", [9, 2, 3], 1e6);
  const combinations = await resultsOf(folder, plan, new Set(["lr-1-seed-0", "lr-1-seed-1", "lr-2-seed-0"]), report);
  expect(sweepTable(plan, combinations)).toEqual([
    "lr    runs  steps       validation             best             loss     sent  time",
    "1        2     20  5.0000 ± 1.4142  5.0000 ± 1.4142  1.0000 ± 0.0000  4.00 kB  0:10",
    "2   1 of 2     30           3.0000           2.0000           1.0000  3.00 MB  0:15",
    "3   0 of 2      –                –                –                –        –     –",
  ]);
  expect(reported).toEqual([]);
  const json = JSON.parse(sweepJson(plan, combinations)) as Record<string, unknown>[];
  expect(json[0]).toMatchObject({ differs: { "optimizer.lr": 1 }, validation: 5, bytes: 4000, finished: 2 });
  expect(json[2]).toMatchObject({ planned: ["lr-3-seed-0", "lr-3-seed-1"], runs: [], finished: 0 });

  const picture = sweepPicture(plan, combinations)!;
  expect(picture).not.toMatch(/NaN|undefined/);
  expect(picture).toContain("lr 1: 5.0000 ± 1.4142");
  expect(picture).toContain("bytes that rank 0 has sent, logarithmic");
  expect(picture.match(/aria-label="line"/g)).toHaveLength(6); // two curves, by steps, bytes and seconds
});

it("says what of a finished run cannot be read", async () => {
  write("lr-1-seed-0", [9, 4], 1000);
  write("lr-2-seed-0", [9, 4], 1000);
  for (const run of ["lr-1-seed-0", "lr-2-seed-0"]) writeFileSync(join(folder, run, "recipe.json"), "{ ");
  await resultsOf(folder, plan, new Set(["lr-1-seed-0"]), report);
  expect(reported).toEqual([expect.stringMatching(/lr-1-seed-0.recipe\.json: not valid YAML/)]);
});

it("draws training losses where nothing is held out, and nothing where no run has a loss", async () => {
  expect(sweepPicture(plan, await resultsOf(folder, plan, new Set(), report))).toBeUndefined();
  mkdirSync(join(folder, "lr-1-seed-0"));
  writeFileSync(join(folder, "lr-1-seed-0", "recipe.json"), JSON.stringify(readRecipe("gpt-small", [])));
  writeFileSync(join(folder, "lr-1-seed-0", "metrics.jsonl"), '{"step":0,"train/loss":2}\n{"step":1,"train/loss":1}\n');
  expect(sweepPicture(plan, await resultsOf(folder, plan, new Set(), report))).toContain("Training loss");
});
