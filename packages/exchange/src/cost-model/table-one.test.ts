import { describe, expect, it } from "vitest";
import { crossing, type Implementation, tableOne, timeOf, uncompressed } from "./table-one.ts";

const of = (implementation: Implementation, workers: number, parameters: number, alpha: number, beta: number) =>
  timeOf(implementation, { workers, parameters }, { alpha, beta });

describe("Table 1 of the Lion Cub paper", () => {
  // P = 8, N = 1000, b = 32, with α = 1 and β = 8 s a byte, so that latency is the number of messages and bandwidth the
  // number of bits.
  it.each([
    ["parameter-server", 14, 512_000], //           2 · 7         2 · 8 · 1000 · 32
    ["parameter-server-efficient", 6, 84_000], //    2 · 3         3 · 7/8 · 1000 · 32
    ["direct", 6, 7000], //                          2 · 3         2 · 7/8 · 1000 · (3 + 1)
    ["compressed", 10, 1875], //                     7 + 3         (1 + 7/8) · 1000
  ] as const)("%s", (name, messages, bits) => {
    expect(of(tableOne[name], 8, 1000, 1, 8)).toEqual({ latency: messages, bandwidth: bits });
  });

  it("compares with all-reduces of 32-bit words: 2 · 3 or 2 · 7 messages, 2 · 7/8 · 1000 · 32 bits", () => {
    expect(of(uncompressed["recursive-halving"], 8, 1000, 1, 8)).toEqual({ latency: 6, bandwidth: 56_000 });
    expect(of(uncompressed.ring, 8, 1000, 1, 8)).toEqual({ latency: 14, bandwidth: 56_000 });
  });

  it("counts words of 16 bits and values of p bits", () => {
    const network = { alpha: 0, beta: 8 };
    const setting = { workers: 4, parameters: 100, wordBits: 16, valueBits: 3 };
    expect(timeOf(uncompressed.ring, setting, network).bandwidth).toBe(2400); // 2 · 3/4 · 100 · 16
    expect(timeOf(tableOne.direct, setting, network).bandwidth).toBe(750); // 2 · 3/4 · 100 · (2 + 3)
    expect(timeOf(tableOne.compressed, setting, network).bandwidth).toBe(525); // (1 + 3/4) · 100 · 3
  });

  it("saves b / (log₂ P + 1) of an all-reduce by counting directly (§3.1)", () => {
    const words = of(uncompressed["recursive-halving"], 128, 1e6, 0, 1).bandwidth;
    expect(words / of(tableOne.direct, 128, 1e6, 0, 1).bandwidth).toBe(4); // 32 / (7 + 1)
  });

  it("sends almost 32 times fewer bits than whole words, for many workers and many parameters", () => {
    const ratio = (workers: number, parameters: number) => {
      const total = (implementation: Implementation) => {
        const { latency, bandwidth } = of(implementation, workers, parameters, 1e-5, 1e-9);
        return latency + bandwidth;
      };
      return total(uncompressed.ring) / total(tableOne.compressed);
    };
    expect(ratio(2, 1e18)).toBeCloseTo(32 / 1.5, 6); // in the table a worker also sends its own part to itself
    expect(ratio(4096, 1e18)).toBeCloseTo((64 * 4095) / 8191, 6); // 31.996
    expect(ratio(4096, 1)).toBeLessThan(2); // only latency: 2 · 4095 against 4095 + 12 messages
  });

  it("costs nothing for a single worker", () => {
    for (const implementation of [...Object.values(tableOne), ...Object.values(uncompressed)])
      expect(of(implementation, 1, 1000, 1, 1)).toEqual({ latency: 0, bandwidth: 0 });
  });
});

describe("the crossing of two implementations", () => {
  const network = { alpha: 1e-5, beta: 8e-9 }; // 1 Gbit/s: 1 ns a bit

  it("is where fewer messages weigh as much as fewer bits: P = 16, direct against compressed", () => {
    // Messages: 15 + 4 − 2 · 4 = 11. Bits a parameter: 2 · 15/16 · 5 − (1 + 15/16) = 7.4375.
    const parameters = crossing(tableOne.direct, tableOne.compressed, { workers: 16 }, network)!;
    expect(parameters).toBeCloseTo((11 * 1e-5) / (7.4375 * 1e-9), 6); // 14 790
    const total = (implementation: Implementation, N: number) => {
      const { latency, bandwidth } = timeOf(implementation, { workers: 16, parameters: N }, network);
      return latency + bandwidth;
    };
    expect(total(tableOne.direct, parameters - 10)).toBeLessThan(total(tableOne.compressed, parameters - 10));
    expect(total(tableOne.direct, parameters + 10)).toBeGreaterThan(total(tableOne.compressed, parameters + 10));
  });

  it("does not exist for two workers, where the all-to-all needs no more messages", () => {
    // 1 + 1 against 2 · 1 messages, 1.5 against 2 bits.
    expect(crossing(tableOne.direct, tableOne.compressed, { workers: 2 }, network)).toBeUndefined();
  });

  it("does not exist for the naïve parameter server, which is never faster with three or more workers", () => {
    for (const workers of [3, 8, 1000])
      expect(crossing(tableOne["parameter-server"], tableOne.direct, { workers }, network)).toBeUndefined();
  });
});
