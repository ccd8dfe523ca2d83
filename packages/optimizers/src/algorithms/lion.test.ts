import { loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { lion } from "../index.ts";
import { mean, optimizerContract } from "../testing/optimizer-contract.ts";
import { trajectory } from "../testing/trajectory.ts";

optimizerContract("lion", {
  create: () => lion({ beta1: 0.5, beta2: 0.75, weightDecay: 0.25 }),
  // Thirds are not exact in f32, so on 3 ranks the smallest sums could change sign: the gradients are chosen to avoid
  // it.
  oracle: (n) => {
    const m = new Array<number>(n).fill(0);
    return (θ, g, { lr }) => {
      const average = mean(g);
      for (let i = 0; i < n; i++) {
        const c = 0.5 * m[i]! + 0.5 * average[i]!;
        θ[i] = θ[i]! - lr * ((Math.abs(c) < 1e-9 ? 0 : Math.sign(c)) + 0.25 * θ[i]!);
        m[i] = 0.75 * m[i]! + 0.25 * average[i]!;
      }
    };
  },
});

describe("lion", () => {
  it("follows lion-pytorch, and leaves an element without gradient as it is", async () => {
    // Computed in float64 with lion-pytorch: θ₀ below, η 0.01, β (0.9, 0.99), λ 0.1, three gradients.
    const [group] = loopback(1);
    const visited = await trajectory(
      group!,
      lion({ beta1: 0.9, beta2: 0.99, weightDecay: 0.1 }),
      [
        [0.5, -0.25, 0, 0, 1],
        [-0.5, -0.25, 1, 0, -0.05],
        [0.1, 3, -1, 0, -0.2],
      ],
      { start: [1, -1, 0.5, 0, 2], lr: 0.01 },
    );
    const expected = [
      [0.989, -0.989, 0.4995, 0, 1.988],
      [0.998011, -0.978011, 0.4890005, 0, 1.976012],
      [0.98701299, -0.98703299, 0.4985115, 0, 1.98403599],
    ];
    for (const [t, row] of expected.entries())
      for (const [i, value] of row.entries()) expect(Math.abs(visited[t]![i]! - value)).toBeLessThanOrEqual(1e-6);
    expect(visited[2]![3]).toBe(0);
    await group!.close();
  });
});
