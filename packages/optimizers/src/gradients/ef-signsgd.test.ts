import { describe, expect, it } from "vitest";
import { efSignsgd } from "../index.ts";
import { gradientContract, ledgerOf } from "../testing/gradient-contract.ts";
import { layerRanges, mean } from "../testing/optimizer-contract.ts";

gradientContract("ef-signsgd", {
  create: () => efSignsgd(),
  oracle(n, ranks) {
    const e = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
    return (g) => {
      const Δ = g.map((own, r) => {
        const p = own.map((value, i) => value + e[r]![i]!);
        const change = layerRanges().flatMap(([begin, end]) => {
          const layer = p.slice(begin, end);
          const magnitude = layer.reduce((sum, value) => sum + Math.abs(value), 0) / layer.length;
          return layer.map((value) => (value >= 0 ? magnitude : -magnitude));
        });
        e[r] = p.map((value, i) => value - change[i]!);
        return change;
      });
      return mean(Δ);
    };
  },
  tolerance: 1e-3, // of values up to 100; a sign of a sum near 0 would differ by more
});

describe("ef-signsgd", () => {
  it("loses nothing: the means and the mean of the errors add up to the mean of all gradients", async () => {
    const { sent, kept, given } = await ledgerOf(efSignsgd, { error: "gradientError" });
    for (const [i, value] of given.entries()) expect(sent[i]! + kept[i]!).toBeCloseTo(value, 4);
  });
});
