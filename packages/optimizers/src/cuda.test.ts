import { topK } from "@terse/codecs";
import { openExchange } from "@terse/exchange";
import { Arena, fromTypedArray, scope } from "@terse/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Algorithm, algorithms, Optimizer } from "./index.ts";
import { Chain, input } from "./testing/chain.ts";
import { EmulatedGpu, gpu } from "./testing/emulated-gpu.ts";
import { type Case, cases, groups, settings, train } from "./testing/gpu-cases.ts";
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

type Ends = Awaited<ReturnType<typeof train>>;

const bitsOf = (ends: Ends) => ends.map(({ bits }) => bits);

const known = new Map<string, Promise<ReturnType<typeof bitsOf>>>();

/** The training to which cases with one more option are compared; it runs once. */
function bitsWithout({ name, create, more, ranks }: Case): Promise<ReturnType<typeof bitsOf>> {
  const key = `${name}, ${ranks} ranks`;
  const bits = known.get(key) ?? train(create, more, "cpu", ranks).then(bitsOf);
  known.set(key, bits);
  return bits;
}

describe("a step on a GPU", () => {
  let emulated: EmulatedGpu;
  beforeAll(() => {
    emulated = new EmulatedGpu();
  }, 300_000);
  afterAll(() => emulated?.[Symbol.dispose]());

  it.each(cases)("gives the bits of the CPU, in parameters and state: $name", async (given) => {
    const { create, more, ranks, near, without, apart = false } = given;
    const expected = await train(create, more, "cpu", ranks);
    const [first] = expected;
    expect(new Set(first!.θ).size).toBeGreaterThan(500);
    expect(first!.apart).toBe(apart);
    if (without) expect(bitsOf(expected)).not.toEqual(await bitsWithout(without));

    const got = await emulated.run(() => train(create, more, gpu, ranks));
    if (!near) return expect(bitsOf(got)).toEqual(bitsOf(expected));
    for (const { bits } of got) expect(bits.θ).toBe(got[0]!.bits.θ);
    const distance = Math.hypot(...first!.θ.map((x, i) => x - got[0]!.θ[i]!)) / Math.hypot(...first!.θ);
    expect(distance).toBeLessThan(1e-4);
  });

  it.each(["lion", "lion-cub", "demo", "dion"] as const)(
    "gives the bits of the CPU while backward runs: %s",
    async (name) => {
      const create = () => (algorithms[name] as (options: object) => Algorithm)(settings[name] ?? {});
      const expected = await trainOverlapped(create);
      expect(await emulated.run(() => trainOverlapped(create, gpu))).toEqual(expected);
    },
  );

  it("replaces a gradient by its compressed mean, also where `into` is given as undefined", async () => {
    const means = (device: string) =>
      onRanks(2, async (group) => {
        const g = fromTypedArray(Float32Array.of(1, -2, 3, -4)).to({ device });
        await openExchange(group).sparse(g, { codec: topK({ k: 2 }), into: undefined });
        return [...((await g.toTypedArray()) as Float32Array)];
      });
    const expected = [0, 0, 3, -4];
    expect(await means("cpu")).toEqual([expected, expected]);
    expect(await emulated.run(() => means(gpu))).toEqual([expected, expected]);
  });
});
