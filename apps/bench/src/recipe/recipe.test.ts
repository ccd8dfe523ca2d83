import { readRecipe } from "@terse/train/recipe";
import { expect, it } from "vitest";
import { chosenIn } from "../convergence/settings.ts";
import { recordedLines } from "../papers/recorded.ts";
import { methods, recipe } from "./recipe.ts";

it("a setting whose settings another's search finds says which to measure", async () => {
  const next = (name: string) => recipe[name]!({ overrides: ["steps=4"] }).next();
  await expect(next("lion-cub-clip-global")).rejects.toThrow("measure both, --settings lion-cub,lion-cub-clip-global");
  await expect(next("muon-1500-steps")).rejects.toThrow("measure both, --settings muon,muon-1500-steps");
});

it("the longer runs are those of methods with a search of their own", () => {
  const longer = Object.keys(recipe).filter((name) => !(name in methods));
  expect(longer).toHaveLength(8);
  for (const name of longer) expect(methods[name.replace("-1500-steps", "")]!.lr).toBeTypeOf("number");
});

/** With two workers, as `./terse train` has them, these do better than what four have found (docs/results/README.md). */
const ofTwoWorkers: Readonly<Record<string, { lr: number; warmup: number }>> = {
  "adamw-terngrad": { lr: 2e-3, warmup: 0.3 },
  "local-muon": { lr: 0.0141, warmup: 0.1 },
};

it("recipes have the rates and warm-ups that the recorded searches have found", () => {
  const lines = recordedLines("recipe");
  const found = Object.keys(methods).flatMap((name) => {
    const value = (metric: string) =>
      lines.find((one) => one.case === `${name}, seed 1` && one.metric === metric)?.value;
    return value("lr") === undefined ? [] : [[name, chosenIn(value)] as const];
  });
  expect(found.length).toBeGreaterThan(5);
  for (const [name, chosen] of found) {
    const { steps, optimizer, schedule } = readRecipe(recipeNameOf(name), []);
    const settings = { lr: optimizer["lr"], warmup: (schedule.warmup as number) / steps };
    expect(settings, name).toEqual(ofTwoWorkers[name] ?? chosen);
  }
});

const recipeNameOf = (name: string) =>
  name === "adamw-qsgd" ? "gpt-small" : `gpt-small-${name.replace("adamw-", "")}`;
