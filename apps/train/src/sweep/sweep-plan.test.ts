import { expect, it } from "vitest";
import { combinationsOf, combinationText, labelsOf, overridesOf, plannedRuns } from "./sweep-plan.ts";

it("has one value of a key for all runs, and several for combinations, also of a key that is repeated", () => {
  const { fixed, swept } = combinationsOf(["steps=9", "optimizer.lr=1,2", "data.path=a=b", "optimizer.lr=3"]);
  expect(fixed).toEqual(["steps=9", "data.path=a=b"]);
  expect([...swept]).toEqual([["optimizer.lr", ["1", "2", "3"]]]);
});

it("refuses a value that is given twice, also in another notation", () => {
  expect(() => combinationsOf(["optimizer.lr=1e-3,0.001", "steps=1,1"])).toThrow(
    "--optimizer.lr: the value 0.001 is given twice; leave one out\n--steps: the value 1 is given twice; leave one out",
  );
});

it("runs every combination with the first seed before the next one, each in a folder that says what it is", () => {
  const swept = new Map([
    ["optimizer.name", ["lion", "adamw"]],
    ["optimizer.lr", ["1e-3", "2e-3"]],
  ]);
  const runs = plannedRuns(swept, [0, 1]);
  expect(runs.map(({ name }) => name)).toEqual([
    "lion-lr-1e-3-seed-0",
    "lion-lr-2e-3-seed-0",
    "adamw-lr-1e-3-seed-0",
    "adamw-lr-2e-3-seed-0",
    "lion-lr-1e-3-seed-1",
    "lion-lr-2e-3-seed-1",
    "adamw-lr-1e-3-seed-1",
    "adamw-lr-2e-3-seed-1",
  ]);
  expect(combinationText(runs[1]!)).toBe("optimizer.name=lion optimizer.lr=2e-3");
  expect(overridesOf({ overrides: ["steps=9"] }, runs[5]!)).toEqual([
    "steps=9",
    "optimizer.name=lion",
    "optimizer.lr=2e-3",
    "seed=1",
  ]);
  expect(plannedRuns(new Map(), [4]).map(({ name }) => name)).toEqual(["seed-4"]);
});

it("makes plain names of any values, and different ones", () => {
  const name = (...values: string[]) => plannedRuns(new Map([["data.path", values]]), [0]).map((run) => run.name);
  const all = name("../a/b c", "A/b c", "a_b_c", "[1, 2]", "…", "x".repeat(300));
  expect(all.slice(0, 3)).toEqual(["path-a_b_c-seed-0", "path-A_b_c-2-seed-0", "path-a_b_c-3-seed-0"]);
  expect(new Set(all.map((each) => each.toLowerCase())).size).toBe(all.length);
  for (const each of all) expect(each).toMatch(/^[\w.+-]{1,80}$/);
});

it("calls a key by the shortest end that no other key has", () => {
  expect([...labelsOf(["optimizer.lr", "local.optimizer.lr", "steps"]).values()]).toEqual([
    "optimizer.lr",
    "local.optimizer.lr",
    "steps",
  ]);
  expect([...labelsOf(["optimizer.lr", "model.name"]).values()]).toEqual(["lr", "name"]);
});
