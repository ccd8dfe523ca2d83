import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loopback } from "@terse/collectives";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parts } from "../measures/step-parts.ts";
import { readRecipe } from "../recipe.ts";
import { adviseAtEnd } from "./at-end.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-at-end-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = () => join(folder, "metrics.jsonl");

/** The lines of a training that has logged these steps, as rank 0 has them. */
function write(steps: readonly number[]): void {
  const line = (step: number) => ({
    step,
    step_seconds: 0.1,
    ...Object.fromEntries(parts.map((part) => [`time/${part}`, 0.01])),
    "time/exposed": 0.01,
    "ranks/compute_seconds": [0.1, 0.1],
    sent_bytes: 1000,
  });
  writeFileSync(file(), steps.map((step) => `${JSON.stringify(line(step))}\n`).join(""));
}

/** What a run of 60 steps prints at its end. */
async function printed(ranks: number, ...overrides: string[]): Promise<string[]> {
  const given = ["model.preset=nano", "model.layers=1", "optimizer.clip=0", "steps=60", ...overrides];
  const recipe = readRecipe("gpt-small", given);
  const run = { recipe, folder, log: (line: object) => appendFileSync(file(), `${JSON.stringify(line)}\n`) };
  const notes: string[] = [];
  const groups = loopback(ranks);
  await Promise.all(
    groups.map((group) =>
      adviseAtEnd(run, group, recipe.steps, (text) => {
        if (group.rank === 0) notes.push(text);
      }),
    ),
  );
  await Promise.all(groups.map((group) => group.close()));
  return notes;
}

it("has advice and the network of a run whose last process took few steps, by the steps of all its processes", async () => {
  write([0, 10, 20, 30, 40, 50, 59]);
  const notes = await printed(2);
  expect(notes[0]).toMatch(/^advice: of 100 ms a step, /);
  expect(readFileSync(file(), "utf8")).toMatch(/"step":60,"network":\{"link":\{"alpha":/);
});

it("has one line that says why there is no advice, and none where nobody wants it", async () => {
  write([40, 50, 59]); // such as on a machine that has not the first lines
  expect(await printed(2)).toEqual(["no advice: it takes 50 measured steps, and metrics.jsonl has 29"]);
  expect(await printed(1)).toEqual(["no advice: one rank sends nothing"]);
  expect(await printed(2, "advise=false")).toEqual([]);
});

it("says how long a warm-up would have been, also of one rank", async () => {
  const layers = (step: number) => ({
    step,
    "layers/names": ["norm.weight"],
    "layers/ratios": [step < 20 ? 0.1 : 0.3],
  });
  writeFileSync(file(), [0, 20, 40, 59].map((step) => `${JSON.stringify(layers(step))}\n`).join(""));
  const lamb = ["optimizer.name=lamb"];
  expect(await printed(1, ...lamb)).toEqual([
    "the trust ratio of 1 of 1 layers changed by less than 10% over the last third of the run; a warm-up of about 21 steps would have held",
    "no advice: one rank sends nothing",
  ]);
  expect(await printed(1, "advise=false", ...lamb)).toEqual([]);
});
