import { Arena, scope } from "@terse/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Algorithm, algorithms, Optimizer } from "./index.ts";
import { Chain, input } from "./testing/chain.ts";
import { EmulatedGpu, gpu } from "./testing/emulated-gpu.ts";
import { cases, groups, settings, train } from "./testing/gpu-cases.ts";
import { onRanks } from "./testing/on-ranks.ts";

/** Parameters of two ranks whose messages leave while backward runs. */
async function trainOverlapped(algorithm: () => Algorithm, device = "cpu"): Promise<number[][]> {
  return onRanks(2, async (group) => {
    const model = new Chain().to({ device });
    const arena = new Arena(model);
    const others = algorithm().takes === "matrices" ? { groups } : {};
    const given = {
      algorithm: algorithm(),
      overlap: "on",
      bucket: 64,
      clip: 1,
      clipBy: "previous",
      ...others,
    } as const;
    await using optimizer = new Optimizer(arena, group, given);
    for (let step = 0; step < 4; step++)
      await scope(async () => {
        arena.zeroGradients();
        const loss = model.loss(input(group.rank, step).to({ device }));
        await optimizer.begin({ lr: 0.01 });
        await loss.backward();
        await optimizer.step({ lr: 0.01 });
      });
    return [...((await arena.parameters.toTypedArray()) as Float32Array)];
  });
}

describe("a step on a GPU", () => {
  let emulated: EmulatedGpu;
  beforeAll(() => {
    emulated = new EmulatedGpu();
  }, 300_000);
  afterAll(() => emulated?.[Symbol.dispose]());

  it.each(cases)("gives the bits of the CPU, in parameters and state: $name", async ({ create, more }) => {
    const expected = await train(create, more);
    expect(new Set(expected[0]!.θ).size).toBeGreaterThan(500);
    expect(await emulated.run(() => train(create, more, gpu))).toEqual(expected);
  });

  it.each(["one-bit-adam", "lamb-basic-one-bit", "one-bit-lamb"] as const)(
    "ends with the same bits on all ranks, near the CPU's: %s, a scale for each layer",
    async (name) => {
      const create = () => (algorithms[name].create as (options: object) => Algorithm)({ warmup: 2 });
      const [expected] = await train(create, {});
      const ranks = await emulated.run(() => train(create, {}, gpu));
      for (const { θ } of ranks) expect(θ).toEqual(ranks[0]!.θ);
      const distance = Math.hypot(...expected!.θ.map((x, i) => x - ranks[0]!.θ[i]!)) / Math.hypot(...expected!.θ);
      expect(distance).toBeLessThan(1e-4);
    },
  );

  it.each(["lion", "lion-cub", "demo", "dion"] as const)(
    "gives the bits of the CPU while backward runs: %s",
    async (name) => {
      const create = () => (algorithms[name].create as (options: object) => Algorithm)(settings[name]?.[0] ?? {});
      const expected = await trainOverlapped(create);
      expect(await emulated.run(() => trainOverlapped(create, gpu))).toEqual(expected);
    },
  );
});
