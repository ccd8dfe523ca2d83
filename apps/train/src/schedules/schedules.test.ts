import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type Recipe, readRecipe, remarksOn } from "../recipe.ts";
import { learningRate, schedules } from "./schedules.ts";

/** Every learning rate of a run, by the keys of its recipe. */
function rates(steps: number, schedule: object, lr = 1): number[] {
  const recipe = readRecipe("gpt-small", [`steps=${steps}`, `schedule=${JSON.stringify(schedule)}`]);
  return Array.from({ length: steps }, (_, t) => learningRate(t, { ...recipe.schedule, steps, lr }));
}

const names = Object.keys(schedules) as Recipe["schedule"]["name"][];

describe.each(names)("the contract of %s", (name) => {
  it("warms up to the highest rate, stays above 0 and never rises after that", () => {
    const all = rates(101, { name, warmup: 20 });
    expect(all.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, t) => (t + 1) / 20));
    expect(all[20]).toBe(1);
    const after = all.slice(20);
    for (const [t, rate] of after.entries()) {
      expect(rate).toBeGreaterThan(0);
      expect(rate).toBeLessThanOrEqual(after[Math.max(0, t - 1)]!);
    }
  });

  it("is proportional to the highest rate", () => {
    const [one, other] = [rates(50, { name, warmup: 7 }), rates(50, { name, warmup: 7 }, 3)];
    for (const [t, rate] of one.entries()) expect(other[t]).toBeCloseTo(3 * rate, 14);
  });

  it("has a rate in runs of one, two and three steps", () => {
    for (const steps of [1, 2, 3])
      for (const warmup of [0, 1, 40])
        for (const rate of rates(steps, { name, warmup })) expect(rate).toBeGreaterThan(0);
  });

  it("cuts a warm-up that is longer than half the run, and says so", () => {
    const all = rates(10, { name, warmup: 40 });
    expect(all.slice(0, 5)).toEqual([0.2, 0.4, 0.6, 0.8, 1]);
    const recipe = readRecipe("gpt-small", ["steps=10", `schedule={ name: ${name}, warmup: 40 }`]);
    expect(remarksOn(recipe)).toEqual(["schedule.warmup: 40 steps are cut to 5, half of the run"]);
    expect(remarksOn({ ...recipe, steps: 80 })).toEqual([]);
  });

  it("names an option that it does not have", () => {
    expect(() => rates(10, { name, finla: 0.1 })).toThrow(/^schedule\.finla: unknown option/);
  });
});

describe("closed forms", () => {
  it("cosine: half-way at half time, and at `final` in the last step", () => {
    const all = rates(101, { name: "cosine", warmup: 20 });
    expect(all[60]).toBeCloseTo(0.55);
    expect(all[100]).toBeCloseTo(0.1);
  });

  it("linear: equal steps down to `final`", () => {
    const all = rates(11, { name: "linear", final: 0.5 });
    for (const [t, rate] of all.entries()) expect(rate).toBeCloseTo(1 - 0.05 * t, 14);
  });

  it("exponential: the rates of 1-bit LAMB's paper for BERT with 128 tokens", () => {
    const paper = { name: "exponential", warmup: 450, start: 1 / 12, decay: 0.9, every: 250 };
    const all = rates(5993, paper, 12e-3);
    expect(all[0]).toBeCloseTo(1e-3, 15);
    for (let t = 0; t < 450; t++) expect(all[t + 1]! / all[t]!).toBeCloseTo(12 ** (1 / 450), 12);
    expect([all[450], all[699], all[700], all[949], all[950]]).toEqual([
      12e-3,
      12e-3,
      12e-3 * 0.9,
      12e-3 * 0.9,
      12e-3 * 0.9 ** 2,
    ]);
  });

  it("multi-step: ten times less at each milestone, after a warm-up from a share of it", () => {
    const all = rates(40, { name: "multi-step", warmup: 4, start: 0.2, milestones: [10, 20] });
    for (const [t, rate] of [0.2, 0.4, 0.6, 0.8, 1].entries()) expect(all[t]).toBeCloseTo(rate, 14);
    for (const [t, rate] of all.slice(4).entries()) expect(rate).toBeCloseTo(t < 10 ? 1 : t < 20 ? 0.1 : 0.01, 14);
  });

  it("warmup-stable-decay: constant, then down to `final` in the last part", () => {
    const given = { name: "warmup-stable-decay", warmup: 4, decay: 0.25, final: 0.2 };
    const linear = rates(20, given);
    expect(linear.slice(4, 16)).toEqual(Array.from({ length: 12 }, () => 1));
    for (const [i, rate] of [0.8, 0.6, 0.4, 0.2].entries()) expect(linear[16 + i]).toBeCloseTo(rate, 14);
    const root = rates(20, { ...given, shape: "square-root" });
    for (const i of [1, 2, 3, 4]) expect(root[15 + i]).toBeCloseTo(1 - 0.8 * Math.sqrt(i / 4), 14);
  });
});

describe("a recipe", () => {
  it("without a schedule, or without its name, has a cosine", () => {
    expect(readRecipe("gpt-small", ["schedule={ warmup: 3 }"]).schedule).toEqual({
      name: "cosine",
      warmup: 3,
      final: 0.1,
    });
    expect(readRecipe("gpt-small", ["schedule={}"]).schedule).toMatchObject({ name: "cosine", warmup: 0 });
  });

  it.each([
    ["schedule.name=cosin", /^schedule\.name: expected one of cosine, linear, .*; did you mean cosine\?/],
    ["schedule.warmup=-1", /^schedule\.warmup: expected an integer ≥ 0/],
    ["schedule={ name: exponential, decay: 1.5 }", /^schedule\.decay: expected a number > 0 and ≤ 1/],
    ["schedule={ name: exponential, every: 0 }", /^schedule\.every: expected an integer ≥ 1/],
    ["schedule={ name: multi-step, milestones: [10, 0] }", /^schedule\.milestones\.1: expected an integer ≥ 1/],
    ["schedule={ name: warmup-stable-decay, shape: root }", /^schedule\.shape: expected one of linear, square-root/],
  ])("refuses %s", (override, message) => {
    expect(() => readRecipe("gpt-small", [override])).toThrow(message);
  });
});

// Torch's schedulers are recurrences in float64, so they drift from the closed forms by a few last digits.
const python = process.env["TERSE_PYTHON"];
it.skipIf(!python)(`agrees with torch.optim.lr_scheduler${python ? "" : " (skipped: TERSE_PYTHON is not set)"}`, () => {
  const script = `
import json, torch
from torch.optim.lr_scheduler import *
steps, warmup = 100, 12

def run(after, milestones=[warmup]):
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.5)
    warm = LinearLR(optimizer, start_factor=1 / warmup, total_iters=warmup - 1)
    schedule = SequentialLR(optimizer, [warm, *after(optimizer)], milestones)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates

print(json.dumps({
    "constant": run(lambda o: [ConstantLR(o, factor=1)]),
    "linear": run(lambda o: [LinearLR(o, start_factor=1, end_factor=0.2, total_iters=steps - warmup - 1)]),
    "cosine": run(lambda o: [CosineAnnealingLR(o, T_max=steps - warmup - 1, eta_min=0.5 * 0.2)]),
    "multi-step": run(lambda o: [MultiStepLR(o, milestones=[20, 50, 51], gamma=0.3)]),
    "exponential": run(lambda o: [StepLR(o, step_size=10, gamma=0.7)]),
    "warmup-stable-decay": run(
        lambda o: [ConstantLR(o, factor=1), LinearLR(o, start_factor=1, end_factor=0.2, total_iters=22)], [warmup, steps - 23]
    ),
}))`;
  const theirs = JSON.parse(execFileSync(python!, ["-W", "ignore", "-c", script], { encoding: "utf8" })) as Record<
    string,
    number[]
  >;
  const final = 0.2;
  const ours: Record<string, object> = {
    constant: {},
    linear: { final },
    cosine: { final },
    exponential: { decay: 0.7, every: 10 },
    "multi-step": { milestones: [20, 50, 51], decay: 0.3 },
    "warmup-stable-decay": { decay: 0.25, final },
  };
  expect(Object.keys(theirs).sort()).toEqual([...names].sort());
  for (const [name, options] of Object.entries(ours))
    for (const [t, rate] of rates(100, { name, warmup: 12, ...options }, 0.5).entries())
      expect(Math.abs(rate - theirs[name]![t]!), `${name}, step ${t}`).toBeLessThan(1e-12);
});
