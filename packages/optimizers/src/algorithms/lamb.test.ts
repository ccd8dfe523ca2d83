import { loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { lamb } from "../index.ts";
import { lambOracle, optimizerContract } from "../testing/optimizer-contract.ts";
import { trajectory } from "../testing/trajectory.ts";

optimizerContract("lamb", {
  create: () => lamb({ beta1: 0.5, beta2: 0.75, eps: 2 ** -10, weightDecay: 0.25, maxRatio: 4 }),
  oracle: (n) => lambOracle(n, { maxRatio: 4 }),
});

describe("lamb", () => {
  // Computed in float64: θ₀ = [1, −2, 0.5, 0.25], the same gradient twice, η 0.01, λ 0.01.
  const gradient = [0.1, -0.2, 0.3, -0.4];
  it.each([
    [
      "apex",
      { variant: "apex" },
      [0.98845457, -1.9883402, 0.48851165, 0.26140263],
      [0.97699091, -1.97676298, 0.47710467, 0.27272449],
    ],
    [
      "deepspeed",
      { variant: "deepspeed" },
      [0.99635352, -1.99634202, 0.49635926, 0.25363212],
      [0.9936465, -1.99362864, 0.49365541, 0.2563312],
    ],
    [
      "paper",
      { variant: "paper", eps: 1e-8 },
      [0.9904832, -1.99045318, 0.49049818, 0.25947933],
      [0.97902079, -1.97896385, 0.4790492, 0.27090812],
    ],
  ] as const)("gives the reference's numbers in the variant %s", async (_, options, first, second) => {
    const [group] = loopback(1);
    const visited = await trajectory(group!, lamb(options), [gradient, gradient], { start: [1, -2, 0.5, 0.25] });
    for (const [t, row] of [first, second].entries())
      for (const [i, value] of row.entries()) expect(Math.abs(visited[t]![i]! - value)).toBeLessThan(2e-7);
    await group!.close();
  });

  it("gives all-zero weights the smallest ratio, in the variants 1, and leaves a layer without an update as it is", async () => {
    const moved = async (options: Parameters<typeof lamb>[0], start: number[], g: number[]) => {
      const [group] = loopback(1);
      const [after] = await trajectory(group!, lamb({ beta1: 0, beta2: 0, ...options }), [g], { start, lr: 1 });
      await group!.close();
      return after!;
    };
    expect((await moved({}, [0, 0], [2, -3]))[0]).toBeCloseTo(-0.01, 6);
    expect((await moved({ variant: "apex" }, [0, 0], [2, -3]))[0]).toBeCloseTo(-1, 5);
    expect((await moved({ variant: "deepspeed" }, [0, 0], [2, -3]))[0]).toBeCloseTo(-1, 5);
    // Their 1 is no quotient, so no bound applies to it.
    for (const variant of ["apex", "deepspeed"] as const)
      expect((await moved({ variant, maxRatio: 0.5 }, [0, 0], [2, -3]))[0]).toBeCloseTo(-1, 5);
    for (const variant of ["paper", "apex", "deepspeed"] as const)
      for (const start of [
        [1, -2],
        [0, 0],
      ])
        expect(await moved({ variant, weightDecay: 0 }, start, [0, 0])).toEqual(start);
  });

  it("scales a layer of one element by its own size", async () => {
    const [group] = loopback(1);
    const options = { beta1: 0, beta2: 0, eps: 1e-6, weightDecay: 0, maxRatio: 10 };
    const [after] = await trajectory(group!, lamb(options), [[-3]], { start: [4], lr: 0.5 });
    expect(after![0]).toBeCloseTo(4 + 0.5 * 4, 4); // u = g / (|g| + ε) = −1, c = 4
    await group!.close();
  });

  it("names options that contradict each other", () => {
    expect(() => lamb({ minRatio: 2, maxRatio: 1 })).toThrow(
      "lamb.minRatio: 2 is more than maxRatio, 1; take minRatio ≤ maxRatio",
    );
    expect(() => lamb({ minRatio: 0.5 })).toThrow("take minRatio ≤ maxRatio");
  });
});
