import type { Group } from "@terse/collectives";
import { parseOptions, v } from "@terse/options";
import { Arena, fromTypedArray, Linear, noGrad } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { lambBasicOneBit, Optimizer, oneBitAdam, oneBitLamb, SavedStateError } from "../index.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { savesOf, stored } from "../testing/stored.ts";
import { startWarmup, warmsUp, warmup, warmupInRun } from "./warmup.ts";

describe("the length of a warm-up", () => {
  const read = (length: unknown) => parseOptions(v.object({ warmup }), { warmup: length }, "").warmup;

  it("is a number of steps, a fraction of the run, or found", () => {
    const inRun = (length: unknown) => warmupInRun({ warmup: read(length), beta2: 0.99 }, 400);
    expect([80, 0.2, 0.001].map(inRun)).toEqual([80, 80, 1].map((warmup) => ({ options: { warmup } })));
    // Δ = 100: after 2 Δ steps at the earliest, and a plan takes it to be a fifth of the run.
    expect(inRun("auto")).toMatchObject({ assumed: { options: { warmup: 200 } } });
    const inLongRun = warmupInRun({ warmup: "auto", beta2: 0.99 }, 4000);
    expect(inLongRun).toMatchObject({ assumed: { options: { warmup: 800 } } });
    const warming = startWarmup(2);
    expect([0, 1, 2].map((step) => warmsUp(warming, step))).toEqual([true, true, false]);
  });

  it("of an optimizer that does not know the run is not a fraction", () => {
    for (const create of [oneBitAdam, oneBitLamb, lambBasicOneBit])
      expect(() => create({ warmup: 0.2 })).toThrow(
        `${create.name}.warmup: 0.2 is a fraction of the run, whose length an optimizer does not know; give steps`,
      );
    expect(() => read(1.5)).toThrow(/warmup: .*got 1\.5/);
  });
});

const methods = Object.entries({ oneBitAdam, oneBitLamb, lambBasicOneBit });

describe.each(methods)("the warm-up of %s that ends by itself", (_, create) => {
  /** Two layers. The gradient of the second one grows until step 7. */
  function open(group: Group, scale: "per-layer" | "momentum-scaled") {
    const arena = new Arena(new Linear(8, 8));
    noGrad(() => arena.parameters.zero_().add_(1));
    const algorithm = create({ warmup: "auto", beta2: 0.8, scale }); // looks every fifth step
    return { arena, optimizer: new Optimizer(arena, group, { algorithm, compareEvery: 1 }) };
  }

  async function advance({ arena, optimizer }: ReturnType<typeof open>, rank: number, until: number) {
    while (optimizer.steps < until) {
      const t = optimizer.steps;
      const size = Math.exp(0.3 * Math.min(t, 7));
      for (const [l, { offset, length }] of arena.segments.entries()) {
        const g = new Float32Array(length).map((_, i) => ((i + t + rank) % 2 ? 1 : -0.75) * (l === 0 ? 1 : size));
        noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(g)));
      }
      await optimizer.step({ lr: 0.01 });
    }
  }

  const ends = async ({ optimizer }: ReturnType<typeof open>) =>
    Object.entries((await optimizer.state()).scalars)
      .filter(([name]) => name.startsWith("compressesFrom"))
      .map(([, value]) => value);

  it.each(["per-layer", "momentum-scaled"] as const)(
    "goes on from a save at any step, with %s magnitudes",
    async (scale) => {
      await onRanks(2, async (group) => {
        const whole = open(group, scale);
        const saves = new Map<number, Awaited<ReturnType<typeof stored>>>();
        const weights = new Map<number, Float32Array>();
        const steps = [3, 5, 7, 10, 12, 15, 18, 21, 25];
        for (const step of steps) {
          await advance(whole, group.rank, step);
          saves.set(step, await stored(whole.optimizer));
          weights.set(step, (await whole.arena.parameters.toTypedArray()) as Float32Array);
        }
        await advance(whole, group.rank, 30);
        expect(await ends(whole)).toEqual(scale === "per-layer" ? [10, 25] : [25]);
        for (const step of steps) {
          const resumed = open(group, scale);
          noGrad(() => resumed.arena.parameters.copy_(fromTypedArray(weights.get(step)!)));
          await resumed.optimizer.restore(step, savesOf(group.rank, 2, saves.get(step)!));
          await advance(resumed, group.rank, 30);
          expect(await ends(resumed), `from step ${step}`).toEqual(await ends(whole));
          expect(await resumed.arena.parameters.toTypedArray()).toEqual(await whole.arena.parameters.toTypedArray());
        }
      });
    },
  );
});

describe.each(methods)("a save of %s", (_, create) => {
  function open(group: Group, warmup: number | "auto") {
    const arena = new Arena(new Linear(8, 8, { bias: false }));
    noGrad(() => arena.parameters.zero_().add_(1));
    return { arena, optimizer: new Optimizer(arena, group, { algorithm: create({ warmup }), compareEvery: 1 }) };
  }

  async function advance({ arena, optimizer }: ReturnType<typeof open>, rank: number, until: number) {
    while (optimizer.steps < until) {
      const t = optimizer.steps;
      const g = new Float32Array(64).map((_, i) => Math.sin(i * 12.9 + t * 78.2 + rank));
      noGrad(() => arena.gradients.copy_(fromTypedArray(g)));
      await optimizer.step({ lr: 0.01 });
    }
  }

  /** θ after 9 steps, on two ranks: `first` is the warm-up until a save, `second` the one after it. */
  const train = (first: number | "auto", at = 9, second = first) =>
    onRanks(2, async (group) => {
      let training = open(group, first);
      await advance(training, group.rank, at);
      if (at < 9) {
        const before = training;
        training = open(group, second);
        noGrad(() => training.arena.parameters.copy_(before.arena.parameters));
        await training.optimizer.restore(at, savesOf(group.rank, 2, await stored(before.optimizer)));
        await advance(training, group.rank, 9);
      }
      return [...((await training.arena.parameters.toTypedArray()) as Float32Array)];
    });

  it.each([
    [4, 6],
    [4, 3],
    [4, "auto"],
    ["auto", 3],
  ] as const)("in its warm-up of %s steps goes on with one of %s", async (before, after) => {
    expect(await train(before, 2, after)).toEqual(await train(after));
  });

  it.each([
    [4, 5, 6, "6, and the warm-up of this save has ended after 4 steps; take the warmup of the save"],
    [6, 4, 4, "4, and this save has taken 4 steps of warm-up; take 5 or more"],
  ])("of %i steps of warm-up refuses after %i one of %i", async (before, at, after, message) => {
    await expect(train(before, at, after)).rejects.toThrow(`.warmup: ${message}`);
    await expect(train(before, at, after)).rejects.toThrow(SavedStateError);
  });
});
