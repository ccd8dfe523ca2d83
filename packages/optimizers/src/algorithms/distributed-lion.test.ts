import { describe, expect, it } from "vitest";
import { distributedLion, lion } from "../index.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { optimizerContract, votingOracle } from "../testing/optimizer-contract.ts";
import { trajectory } from "../testing/trajectory.ts";

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

optimizerContract("distributed-lion with a mask of what has had a gradient", {
  create: () => distributedLion({ ...options, maskEvery: 1 }),
  oracle: votingOracle((sum) => Math.sign(sum), { masked: true }),
});

// The 2-bit vote, which sends exact zeros: what never had a gradient stays where it is.
optimizerContract("distributed-lion by majority, zeros held", {
  create: () => distributedLion({ ...options, zero: "hold" }),
  oracle: votingOracle((sum) => Math.sign(sum), { zero: "hold" }),
});

optimizerContract("distributed-lion by average, zeros held", {
  create: () => distributedLion({ ...options, vote: "average", zero: "hold" }),
  oracle: votingOracle((sum, ranks) => sum / ranks, { zero: "hold" }),
});

describe("distributed-lion", () => {
  it.each([
    [1, "majority"],
    [1, "average"],
    [3, "majority"],
    [4, "average"],
  ] as const)("is Lion on %i ranks with the same gradients, zeros held, by %s", async (ranks, vote) => {
    const rows = Array.from({ length: 20 }, (_, t) =>
      Array.from({ length: 50 }, (_, i) => Math.round(3 * Math.sin(i + t * t))),
    );
    const start = rows[0]!.map((_, i) => Math.cos(i));
    const own = { beta1: 0.9, beta2: 0.99, weightDecay: 0.1 };
    const [plain] = await onRanks(1, (group) => trajectory(group, lion(own), rows, { start }));
    const algorithm = () => distributedLion({ ...own, vote, zero: "hold" });
    for (const visited of await onRanks(ranks, (group) => trajectory(group, algorithm(), rows, { start })))
      for (const [t, θ] of visited.entries())
        for (const [i, value] of θ.entries()) expect(Math.abs(value - plain![t]![i]!)).toBeLessThan(1e-6);
  });

  it.each(["majority", "average"] as const)(
    "does not move an element that has never had a gradient when zeros are held, by %s",
    async (vote) => {
      const rows = Array.from({ length: 3 }, () => [0, 1, 0, -1]);
      const moved = async (zero: "hold" | "alternate") =>
        onRanks(2, async (group) =>
          trajectory(group, distributedLion({ vote, zero }), rows, { start: [0, 0, 0, 0], lr: 1 }),
        );
      for (const steps of await moved("hold"))
        expect(steps).toEqual([
          [0, -1, 0, 1],
          [0, -2, 0, 2],
          [0, -3, 0, 3],
        ]);
      for (const steps of await moved("alternate")) expect(steps[0]![0]).not.toBe(0);
    },
  );

  it("refuses options that would have no effect", () => {
    expect(() => distributedLion({ vote: "average", tie: "plus" })).toThrow(
      "distributed-lion.tie: an average has no ties, and tie is plus; leave tie out, or take vote: majority",
    );
    expect(() => distributedLion({ zero: "hold", tie: "alternate" })).toThrow(
      "distributed-lion.tie: with zero: hold a sum of 0 does not move, and tie is alternate; leave tie out, or take another zero",
    );
    for (const option of [{ vote: "average" }, { zero: "hold" }] as const)
      expect(() => distributedLion({ ...option, maskEvery: 10 })).toThrow(
        /^distributed-lion\.maskEvery: .* leave maskEvery out/m,
      );
    for (const fine of [{ vote: "average" }, { zero: "hold", tie: "zero" }, { tie: "plus" }] as const)
      expect(() => distributedLion(fine)).not.toThrow();
  });

  it("names the vote that does not exist", () => {
    expect(() => distributedLion({ vote: "avrage" as never })).toThrow(/did you mean average/);
  });
});
