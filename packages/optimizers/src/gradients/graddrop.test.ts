import { describe, expect, it } from "vitest";
import { graddrop } from "../index.ts";
import { gradientContract } from "../testing/gradient-contract.ts";
import { largestOf } from "../testing/largest.ts";
import { layerLengths, layerRanges, mean } from "../testing/optimizer-contract.ts";

for (const threshold of ["layer", "model"] as const)
  gradientContract(`graddrop, one threshold for each ${threshold}`, {
    create: () => graddrop({ ratio: 0.1, threshold }),
    oracle(n, ranks) {
      const e = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
      const parts: [number, number][] = threshold === "layer" ? layerRanges() : [[0, n]];
      // Pads between parameters are elements of the model as well: k counts them.
      const padded = layerLengths.reduce((sum, length) => sum + 64 * Math.ceil(length / 64), 0);
      const ratio = threshold === "layer" ? 0.1 : Math.ceil(0.1 * padded) / n;
      return (g) => {
        const dropped = g.map((own, r) => {
          const all = own.map((value, i) => value + e[r]![i]!);
          const sent = new Array<number>(n).fill(0);
          for (const [begin, end] of parts)
            for (const i of largestOf(all.slice(begin, end), ratio)) sent[begin + i] = all[begin + i]!;
          e[r] = all.map((value, i) => value - sent[i]!);
          return sent;
        });
        return mean(dropped);
      };
    },
  });

describe("graddrop", () => {
  it("refuses a ratio of nothing, and of more than all", () => {
    for (const ratio of [0, 1.5]) expect(() => graddrop({ ratio })).toThrow(/graddrop.*ratio/);
  });
});
