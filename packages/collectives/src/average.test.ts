import { describe, expect, it } from "vitest";
import { average } from "./average.ts";

const vector = (n: number, seed: number) =>
  Float32Array.from({ length: n }, (_, i) => Math.sin(i * i + seed) * 10 ** (i % 7));

describe("an average of vectors", () => {
  it.each([1, 2, 3, 8])("of %i is their sum in fp64, in order, rounded once", (ranks) => {
    for (const n of [0, 1, 511, 512, 513, 2000]) {
      const parts = Array.from({ length: ranks }, (_, r) => vector(n, r));
      const into = new Float32Array(n).fill(7);
      expect(average(into, parts)).toBe(n);
      const expected = into.map((_, i) => parts.reduce((sum, part) => sum + part[i]!, 0) / ranks);
      expect(into).toEqual(expected);
      expect(average(parts[0]!, parts)).toBe(n); // in place
      expect(parts[0]).toEqual(expected);
    }
  });

  it("names the first element that is not finite", () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
      for (const at of [0, 511, 512, 1300]) {
        const parts = [vector(1400, 1), vector(1400, 2)];
        parts[1]![at] = bad;
        parts[0]![1399] = Number.NaN;
        expect(average(new Float32Array(1400), parts)).toBe(at);
      }
    const huge = new Float32Array(3).fill(3e38);
    expect(average(new Float32Array(3), [huge, huge])).toBe(3); // their sum is beyond f32, their mean is not
  });

  it("refuses arrays that do not fit", () => {
    expect(() => average(new Float32Array(3), [])).toThrow("there are no parts");
    expect(() => average(new Float32Array(3), [new Float32Array(4)])).toThrow("into has 3 elements and a part has 4");
    expect(() => average(new Float32Array(3), [new Uint8Array(3)])).toThrow("must be f32 on the CPU");
  });
});
