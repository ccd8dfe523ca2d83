import { expect, it } from "vitest";
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
