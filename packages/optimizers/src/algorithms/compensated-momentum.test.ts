import { fromTypedArray, noGrad, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import type { Vector } from "./algorithm.ts";
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
