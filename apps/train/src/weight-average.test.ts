/** The average of weights beside PyTorch's. */
import { Arena, fromTypedArray, Linear, noGrad, scope } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { needsPython, runPython } from "../../../packages/tensor/src/testing/python.ts";
import { readRecipe, remarksOn } from "./recipe.ts";
import { WeightAverage } from "./weight-average.ts";

/** Weights after step `step`: no two are alike, and a mean of them is rounded. */
const weightsAfter = (step: number, length: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(1 + i * 0.37 + step * 1.7) * 10 ** ((i % 7) - 3));

function arenaOf(inputs: number, outputs: number) {
  const layer = new Linear(inputs, outputs, { bias: false });
  const arena = new Arena(layer);
  const set = (step: number) =>
    noGrad(() =>
      scope(() => void layer.weight.copy_(fromTypedArray(weightsAfter(step, inputs * outputs), [outputs, inputs]))),
    );
  const read = async () => (await layer.weight.toTypedArray()) as Float32Array;
  return { arena, set, read };
}

it.skipIf(needsPython !== "")(
  `has the bits of AveragedModel with get_ema_multi_avg_fn, from any step on${needsPython}`,
  async () => {
    for (const { decay, from } of [
      { decay: 0.9, from: 0 },
      { decay: 0.999, from: 3 },
      { decay: 0, from: 1 },
    ]) {
      const [inputs, outputs, steps] = [67, 13, 9];
      const { arena, set, read } = arenaOf(inputs, outputs);
      using average = new WeightAverage(arena, { decay, from });
      for (let step = 0; step < steps; step++) {
        set(step);
        average.update(step);
        expect(average.hasBegun).toBe(step >= from);
      }
      const rows = fromTypedArray(
        Float32Array.from(Array.from({ length: steps }, (_, step) => [...weightsAfter(step, inputs * outputs)]).flat()),
        [steps, outputs, inputs],
      );
      const theirs = await runPython(
        `
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
model = torch.nn.Linear(${inputs}, ${outputs}, bias=False)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(${decay}))
for weights in inputs["rows"][${from}:]:
    with torch.no_grad():
        model.weight.copy_(weights)
    average.update_parameters(model)
outputs["average"] = average.module.weight.detach()
`,
        { rows },
      );
      expect(await average.during(read)).toEqual(await theirs["average"]!.toTypedArray());
      expect(await read()).toEqual(weightsAfter(steps - 1, inputs * outputs));
    }
  },
);

it("gives the model its own weights back, also after an error, and where they are several chunks", async () => {
  const { arena, set, read } = arenaOf(1500, 1500);
  using average = new WeightAverage(arena, { decay: 0.5, from: 0 });
  set(0);
  average.update(0);
  set(1);
  const failing = average.during(async () => {
    expect(await read()).toEqual(weightsAfter(0, 1500 * 1500));
    throw new Error("no disk");
  });
  await expect(failing).rejects.toThrow("no disk");
  expect(await read()).toEqual(weightsAfter(1, 1500 * 1500));
});

it("goes on from what a save has, also where it would begin later", async () => {
  const { arena, set, read } = arenaOf(8, 8);
  using average = new WeightAverage(arena, { decay: 0.5, from: 100 });
  set(0);
  await average.restore(async () => set(1));
  expect([average.hasBegun, await read()]).toEqual([true, weightsAfter(0, 64)]);
  average.update(7);
  const half = Float32Array.from(weightsAfter(1, 64), (value, i) => Math.fround((value + weightsAfter(0, 64)[i]!) / 2));
  for (const [i, value] of (await average.during(read)).entries()) expect(value).toBeCloseTo(half[i]!, 3);
});

describe("a recipe", () => {
  const recipe = (...overrides: string[]) => readRecipe("gpt-small", ["average.decay=0.9", ...overrides]);

  it("has no average where ranks have weights of their own, or where none would begin", () => {
    expect(() => recipe("local.syncEvery=5")).toThrow(/^average: with local the ranks share their weights only/m);
    expect(() => recipe("optimizer={name: zero-one-adam, lr: 1e-3, freeze: 10}")).toThrow(
      /^average: with optimizer\.localSteps of 0\/1 Adam the ranks' weights differ/m,
    );
    expect(() => recipe("steps=50", "average.from=50")).toThrow(
      /^average\.from: the average begins after 50 steps, and the run has 50/m,
    );
    expect(() => recipe("average.decay=1")).toThrow(/^average\.decay: /m);
    expect(recipe("average=null").average).toBeUndefined();
  });

  it("is told of a decay that the run is too short for", () => {
    expect(remarksOn(recipe("steps=101", "average.decay=0.999")).join()).toMatch(
      /average\.decay: at the end of the run 90 % of the average are still the weights with which it began; take a smaller decay, such as 0\.97/,
    );
    expect(remarksOn(recipe("steps=101", "average.decay=0.97")).join()).not.toMatch(/average/);
  });
});
