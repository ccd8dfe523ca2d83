import { describe, expect, it } from "vitest";
import { fingerprint } from "./index.ts";

const vector = (n: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(i + 1));

describe("a fingerprint", () => {
  it("is the same for the same bits at another address", () => {
    const x = vector(1000);
    const moved = new Float32Array(1003).subarray(3);
    moved.set(x);
    expect(fingerprint(moved)).toBe(fingerprint(x));
  });

  it("changes with every bit of every element, also with the sign of a zero", () => {
    for (const n of [1, 2, 15, 16, 17, 31, 100]) {
      const x = vector(n);
      const seen = new Set([fingerprint(x)]);
      const bits = new Uint32Array(x.buffer);
      for (let i = 0; i < n; i++)
        for (let bit = 0; bit < 32; bit++) {
          bits[i]! ^= (1 << bit) >>> 0;
          seen.add(fingerprint(x));
          bits[i]! ^= (1 << bit) >>> 0;
        }
      expect(seen.size).toBe(32 * n + 1);
    }
    expect(fingerprint(Float32Array.of(0))).not.toBe(fingerprint(Float32Array.of(-0)));
  });

  it("changes when any two signs flip at once, as an error of a sign method would flip them", () => {
    const x = vector(64);
    const seen = new Set<bigint>([fingerprint(x)]);
    for (let i = 0; i < 64; i++)
      for (let j = 0; j < i; j++) {
        x[i]! *= -1;
        x[j]! *= -1;
        seen.add(fingerprint(x));
        x[i]! *= -1;
        x[j]! *= -1;
      }
    expect(seen.size).toBe((64 * 63) / 2 + 1);
  });

  it("changes with the order and the length", () => {
    expect(fingerprint(Float32Array.of(1, 2))).not.toBe(fingerprint(Float32Array.of(2, 1)));
    expect(fingerprint(new Float32Array(8))).not.toBe(fingerprint(new Float32Array(9)));
  });
});
