/** What codecs that draw must do, for their tests. */
import { expect } from "vitest";
import type { Codec } from "../codec.ts";
import type { RandomStream } from "../shared/random/random.ts";
import { gradients } from "./inputs.ts";

/**
 * The mean of 100 000 decoded draws is x, within 4σ. `parts`: what the levels stand for, as parts of the scale, from 0
 * to 1; `scaleOf`: the scale of a vector whose largest magnitude is 1.
 */
export function isUnbiased(
  codec: Codec<RandomStream>,
  parts: readonly number[],
  scaleOf: (x: Float32Array) => number,
): void {
  const values = [1, -0.9, 0.01, -0.33, 0.5, 0.125, -0.0625, 0];
  const [tiles, seeds] = [12_500, 8];
  const x = Float32Array.from({ length: values.length * tiles }, (_, i) => values[i % values.length]!);
  const scale = scaleOf(x);
  const wire = new Uint8Array(codec.wireBytes(x.length));
  const sums = new Float64Array(values.length);
  for (let seed = 0; seed < seeds; seed++) {
    const decoded = new Float32Array(x.length);
    codec.encode(wire, x, { seed, step: 3 });
    codec.decodeAdd(decoded, wire);
    for (const [i, value] of decoded.entries()) sums[i % values.length]! += value;
  }
  for (const [i, value] of values.entries()) {
    const part = Math.abs(value) / scale;
    const above = parts.find((level) => level >= part)!;
    const below = parts.findLast((level) => level <= part)!;
    // A value drawn from {below, above} with mean `part` has the variance (part − below)(above − part).
    const sigma = scale * Math.sqrt(((part - below) * (above - part)) / (tiles * seeds));
    const rounding = 1e-6 * Math.abs(value);
    expect(Math.abs(sums[i]! / (tiles * seeds) - value), `x = ${value}`).toBeLessThanOrEqual(4 * sigma + rounding);
  }
}

/** Draws depend on seed, step and place alone: for a codec with blocks of 64. */
export function asksForTheSameDraws(codec: Codec<RandomStream>): void {
  const n = 64 * 5 + 17;
  const x = gradients(n, 11);
  const decoded = (from: number, to: number, call: RandomStream): number[] => {
    const wire = new Uint8Array(codec.wireBytes(to - from));
    const sum = new Float32Array(to - from);
    codec.encode(wire, x.slice(from, to), call);
    codec.decodeAdd(sum, wire);
    return [...sum];
  };
  const [seed, step, index] = [2 ** 50 + 3, 2 ** 34 + 1, 64 * 2 ** 33];
  const whole = decoded(0, n, { seed, step, index });
  for (const cut of [64, 192, 320])
    expect([...decoded(0, cut, { seed, step, index }), ...decoded(cut, n, { seed, step, index: index + cut })]).toEqual(
      whole,
    );
  expect(decoded(0, n, { seed, step, index })).toEqual(whole);
  expect(decoded(0, n, { seed: seed + 1, step, index })).not.toEqual(whole);
  expect(decoded(0, n, { seed, step: step + 1, index })).not.toEqual(whole);
  expect(decoded(0, n, { seed, step })).not.toEqual(whole);
}
