import { loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { lion, lionCub } from "./index.ts";
import { optimizerContract, votingOracle } from "./optimizer-contract.ts";
import { trajectory } from "./testing.ts";

optimizerContract("lion-cub", {
  create: () => lionCub({ beta1: 0.5, beta2: 0.75, weightDecay: 0.25 }),
  // Algorithm 1 of the paper, with one bit and alternating ties (§3.2)
  oracle: votingOracle((sum, _, alternate) => Math.sign(sum) || alternate),
});

describe("lion-cub", () => {
  it.each(["plus", "minus", "alternate"] as const)(
    "is Lion on one rank, bit for bit, when zeros are %s",
    async (zero) => {
      const [group] = loopback(1);
      const options = { beta1: 0.9, beta2: 0.99, weightDecay: 0.1, zero };
      const ours = await trajectory(group!, lionCub(options), 50);
      const plain = await trajectory(group!, lion(options), 50);
      expect(ours).toEqual(plain);
      await group!.close();
    },
  );

  it("names the option that is wrong", () => {
    expect(() => lionCub({ beta1: 1.5 })).toThrow(/lion-cub\.beta1/);
    expect(() => lionCub({ zero: "hold" as never })).toThrow(/lion-cub\.zero.*plus.*minus.*alternate/);
  });
});
