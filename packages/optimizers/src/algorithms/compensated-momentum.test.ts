import { loopback } from "@terse/collectives";
import { openExchange } from "@terse/exchange";
import { fromTypedArray, noGrad, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import type { OptimizerExchange, StepContext, Vector } from "./algorithm.ts";
import { CompensatedMomentum } from "./compensated-momentum.ts";

const tensor = (values: readonly number[]) => fromTypedArray(Float32Array.from(values));

/** Layers of these momenta, each followed by a pad up to 64 elements. */
function layers(...momenta: number[][]): { vector: Vector; m: Tensor } {
  const segments = momenta.map((values, k) => ({ name: `${k}`, offset: 64 * k, length: values.length }));
  const lengths = momenta.flatMap(({ length }) => [length, 64 - length]);
  const vector = { n: 64 * momenta.length, offset: 0, segments, lengths, rank: 0, ranks: 1 } as unknown as Vector;
  return { vector, m: tensor(momenta.flatMap((values) => [...values, ...new Array(64 - values.length).fill(0)])) };
}

describe("momentum scaling", () => {
  const factorsOf = (...momenta: number[][]) => {
    const { vector, m } = layers(...momenta);
    const momentum = new CompensatedMomentum("momentum-scaled", 0.9);
    const state = momentum.init(m, vector);
    noGrad(() => state.elements.m.copy_(m));
    momentum.chooseFactors(state, vector);
    return state.scalars.factors;
  };

  it("brings every layer to the mean size of the layers, as Appendix A.5.2 and DeepSpeed", () => {
    const [first, second] = factorsOf([0.01, -0.02], [1, 2, -1]);
    expect(first).toBeCloseTo(45.22135955, 4);
    expect(second).toBeCloseTo(0.5055901699, 7);
  });

  it("leaves a layer whose momentum is zero as it is", () => {
    const factors = factorsOf([0, 0], [3, -3]);
    expect(factors[0]).toBe(1);
    expect(factors[1]).toBeCloseTo(0.5, 6);
  });
});

describe("the momentum that is sent", () => {
  it("has the bits of libtorch's add_: one pass in place of three", async () => {
    const n = 1003; // 64 elements of a vector, and a tail
    const random = (seed: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(i * i + seed) / 7);
    const tensors = [tensor([...random(1)]), tensor([...random(2)]), tensor([...random(3)])] as const;
    const [g, m, error] = tensors;
    const before = Float32Array.from(random(2));
    const sent = noGrad(() =>
      error
        .clone()
        .add_(m, { alpha: 0.9 })
        .add_(g, { alpha: (1 - 0.9) * 0.37 }),
    );

    const segments = [{ name: "x", offset: 0, length: n }];
    const vector = { n, offset: 0, segments, lengths: [n, 0], rank: 0, ranks: 1 } as unknown as Vector;
    const momentum = new CompensatedMomentum("per-layer", 0.9);
    const state = momentum.init(m, vector);
    noGrad(() => [state.elements.m.copy_(m), state.elements.workerError.copy_(error)]);
    const [group] = loopback(1);
    const last = noGrad(() => m.mul(0));
    const context = { step: 0, lr: 1, gradientScale: 0.37, vector } as StepContext;
    const ones = tensor(new Array(n).fill(1));
    await momentum.average(g, state, ones, openExchange(group!) as unknown as OptimizerExchange, context, last);
    await group!.close();

    // What is kept is what was to be sent, less the one magnitude with its sign: 1-bit Adam, Algorithm 1, line 8.
    const [all, kept, mean] = await Promise.all([sent, state.elements.workerError, state.elements.m].map(floatsOf));
    const scale = Math.fround(Math.sqrt(all!.reduce((sum, x) => sum + x * x, 0) / n));
    expect(Math.abs(mean![0]!)).toBeCloseTo(scale, 7);
    expect([...kept!]).toEqual([...all!].map((x, i) => Math.fround(x - mean![i]!)));
    expect(await floatsOf(last)).toEqual(before);
  });
});

const floatsOf = async (x: Tensor) => (await x.toTypedArray()) as Float32Array;
