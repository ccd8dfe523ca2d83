import { describe, expect, it } from "vitest";
import { distributedLion } from "../index.ts";
import { optimizerContract, votingOracle } from "../testing/optimizer-contract.ts";

const options = { beta1: 0.5, beta2: 0.75, weightDecay: 0.25 } as const;

optimizerContract("distributed-lion by majority, ties zero", {
  create: () => distributedLion(options),
  oracle: votingOracle((sum) => Math.sign(sum)),
});

optimizerContract("distributed-lion by majority, ties alternating", {
  create: () => distributedLion({ ...options, tie: "alternate" }),
  oracle: votingOracle((sum, _, alternate) => Math.sign(sum) || alternate),
});

optimizerContract("distributed-lion by average", {
  create: () => distributedLion({ ...options, vote: "average" }),
  oracle: votingOracle((sum, ranks) => sum / ranks),
});

describe("distributed-lion", () => {
  it("names the vote that does not exist", () => {
    expect(() => distributedLion({ vote: "avrage" as never })).toThrow(/did you mean average/);
  });
});
