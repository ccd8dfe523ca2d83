import { describe, expect, it } from "vitest";
import { type Algorithm, compressed, lion, lionSteps, sgd } from "../index.ts";
import { gradientContract, meansOf } from "../testing/gradient-contract.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { mean } from "../testing/optimizer-contract.ts";
import { trainLocally, wandering } from "../testing/train-locally.ts";

const given = { unit: 2 ** -4, steps: 10 };
const halfEven = (x: number) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));
const asWhole = (value: number) => given.unit * Math.max(-10, Math.min(10, halfEven(value / given.unit)));

gradientContract("lion-steps", {
  create: () => lionSteps(given),
  oracle: () => (g) => mean(g.map((own) => own.map(asWhole))),
});

describe("whole numbers of Lion's steps", () => {
  it("are the exact mean of what is whole, in any order of the ranks", async () => {
    const own = (rank: number) =>
      Float32Array.from({ length: 300 }, (_, i) => given.unit * (((i * 7 + 5 * rank) % 21) - 10));
    for (const orders of [
      [0, 1, 2],
      [2, 0, 1],
    ]) {
      const means = await onRanks(3, async (group) => {
        return (await meansOf(group, lionSteps(given), [own(orders[group.rank]!)])).means[0]!;
      });
      const exact = Array.from({ length: 300 }, (_, i) => {
        const sum = [0, 1, 2].reduce((total, rank) => total + Math.round(own(rank)[i]! / given.unit), 0);
        return Math.fround(Math.fround(given.unit / 3) * sum) + 0;
      });
      for (const each of means) expect([...each].map((value) => value + 0)).toEqual(exact);
    }
  });

  it("give what means in f32 give after rounds of local steps with Lion inside, but for the rounding of f32", async () => {
    const [steps, lr] = [40, 3e-3];
    const train = (outer: Algorithm) => {
      const inner = { algorithm: lion() };
      return trainLocally(4, { syncEvery: 10, inner, outer: { algorithm: outer } }, wandering, {
        steps,
        lr,
        sizes: [3, 200],
      });
    };
    const whole = await train(compressed(sgd(), lionSteps({ unit: lr, steps: 10 })));
    const dense = await train(sgd());
    const at = (run: typeof whole) => run[0]!.seen[9]!.shared.flat();
    // The first round starts at the same θ on all ranks, so the same steps lie behind it.
    for (const [i, value] of at(whole).entries()) expect(Math.abs(value - at(dense)[i]!)).toBeLessThan(10 * 2 ** -23);
    for (const { seen } of whole)
      expect(seen.map(({ shared }) => shared)).toEqual(whole[0]!.seen.map(({ shared }) => shared));
  });

  it("send a fifth of what f32 sends", async () => {
    const bytesOf = async (algorithm: Algorithm) =>
      (
        await trainLocally(4, { syncEvery: 10, inner: { algorithm: lion() }, outer: { algorithm } }, wandering, {
          steps: 10,
          sizes: [4096],
        })
      )[0]!.seen[9]!.closed;
    const [whole, dense] = [
      await bytesOf(compressed(sgd(), lionSteps({ unit: 0.1, steps: 10 }))),
      await bytesOf(sgd()),
    ];
    expect(whole / dense).toBeLessThan(0.21);
  });

  it("refuses more steps than a level has bits for", () => {
    for (const steps of [0, 128, 1.5]) expect(() => lionSteps({ unit: 0.1, steps })).toThrow(/lion-steps\.steps/);
    expect(() => lionSteps({ unit: 0, steps: 10 })).toThrow(/lion-steps\.unit/);
    expect(() => lionSteps({ steps: 10 })).toThrow(/lion-steps\.unit: lion-steps needs it; give Lion's learning rate/);
    expect(() => lionSteps({ unit: 0.1 })).toThrow(/lion-steps\.steps: lion-steps needs it; give the steps/);
  });
});
