import { describe, expect, it } from "vitest";
import { distributedLion } from "./index.ts";
import { type Oracle, optimizerContract } from "./optimizer-contract.ts";

/** Algorithm 1 of the paper; Δ from the sum of the ranks' signs. */
function oracle(Δ: (sum: number, ranks: number, alternate: number) => number) {
  return (n: number, ranks: number): Oracle => {
    const m = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
    return (θ, g, { step, lr }) => {
      const alternate = step % 2 === 0 ? 1 : -1;
      for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let r = 0; r < ranks; r++) {
          sum += Math.sign(0.5 * m[r]![i]! + 0.5 * g[r]![i]!) || alternate;
          m[r]![i] = 0.75 * m[r]![i]! + 0.25 * g[r]![i]!;
        }
        θ[i] = θ[i]! - lr * (Δ(sum, ranks, alternate) + 0.25 * θ[i]!);
      }
    };
  };
}

const options = { beta1: 0.5, beta2: 0.75, weightDecay: 0.25 } as const;

optimizerContract("distributed-lion by majority, ties zero", {
  create: () => distributedLion(options),
  oracle: oracle((sum) => Math.sign(sum)),
});

optimizerContract("distributed-lion by majority, ties alternating", {
  create: () => distributedLion({ ...options, tie: "alternate" }),
  oracle: oracle((sum, _, alternate) => Math.sign(sum) || alternate),
});

optimizerContract("distributed-lion by average", {
  create: () => distributedLion({ ...options, vote: "average" }),
  oracle: oracle((sum, ranks) => sum / ranks),
});

describe("distributed-lion", () => {
  it("names the vote that does not exist", () => {
    expect(() => distributedLion({ vote: "avrage" as never })).toThrow(/did you mean average/);
  });
});
