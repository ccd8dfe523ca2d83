import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { recipe } from "./convergence/convergence.ts";
import { Trainers } from "./convergence/trainers.ts";
import { forgetKeptRuns } from "./kept-runs.ts";

const setting = `test-${process.pid}/search`;
const folder = fileURLToPath(new URL(`../../../runs/bench/${setting}/`, import.meta.url));
const run = {
  recipe,
  overrides: ["model.width=8", "model.heads=1", "model.layers=1", "steps=2", "optimizer.lr=1e-3"],
  workers: 1,
  every: 2,
};
const diverging = { ...run, overrides: [...run.overrides, "optimizer.lr=1e30"] };

afterEach(() => forgetKeptRuns(`test-${process.pid}`));

async function trained(of: string | undefined, ...runs: (typeof run)[]) {
  await using trainers = await Trainers.open(of);
  return await Promise.all(runs.map((one) => trainers.train(one)));
}

it("finished runs are kept until their setting is complete, so that one that is cut off goes on where it was", async () => {
  const [first] = await trained(setting, run);
  const [file] = readdirSync(folder) as [string];
  const kept = JSON.parse(readFileSync(`${folder}${file}`, "utf8"));
  expect(kept.points).toEqual(first!.points);
  writeFileSync(`${folder}${file}`, JSON.stringify({ ...kept, points: [{ step: 2, loss: 7 }] }));
  const [again, other] = await trained(setting, run, { ...run, overrides: [...run.overrides, "seed=1"] });
  expect(again!.points).toEqual([{ step: 2, loss: 7 }]);
  expect(other!.points.at(-1)!.loss).not.toBe(7);
  forgetKeptRuns(setting);
  expect(() => readdirSync(folder)).toThrow("ENOENT");
});

it("a run that broke off is kept as such", async () => {
  const [first] = await trained(setting, diverging);
  const [again] = await trained(setting, diverging);
  expect(first!.points.at(-1)!.loss).toBeNaN();
  expect(again!.points).toEqual(first!.points);
});

it("nothing is kept without a setting", async () => {
  await trained(undefined, run);
  expect(() => readdirSync(folder)).toThrow("ENOENT");
});
