import { fromTypedArray } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { needsPython, python, runPython } from "../../../tensor/src/testing/python.ts";
import { type Optimizer, oneBitAdam } from "../index.ts";
import { compensatedMean, momentumFactors } from "../testing/compensated-mean.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { mean, type Oracle, optimizerContract } from "../testing/optimizer-contract.ts";
import { noise } from "../testing/train-matrices.ts";
import { trajectory } from "../testing/trajectory.ts";

const warmup = 3;

type Scale = "per-layer" | "fused" | "momentum-scaled";

/** Algorithm 1 in float64 with β₁ 1/2, β₂ 3/4, λ 1/4 and ε 2⁻⁴. */
function oracle(n: number, ranks: number, scale: Scale): Oracle {
  const v = new Array<number>(n).fill(0);
  let m = new Array<number>(n).fill(0);
  let factors = new Array<number>(n).fill(1);
  const compensated = compensatedMean(ranks, { perLayer: scale === "per-layer" });
  return (θ, g, { step, lr }) => {
    if (step === warmup && scale === "momentum-scaled") factors = momentumFactors(m);
    if (step < warmup)
      for (const [i, value] of mean(g).entries()) {
        m[i] = 0.5 * m[i]! + 0.5 * value;
        v[i] = 0.75 * v[i]! + 0.25 * value ** 2;
      }
    else
      m = compensated(
        g.map((own) => own.map((value, i) => factors[i]! * (0.5 * m[i]! + 0.5 * value))),
        v,
      ).map((value, i) => value / factors[i]!);
    for (let i = 0; i < n; i++) θ[i] = θ[i]! - lr * (m[i]! / (Math.sqrt(v[i]!) + 2 ** -4) + 0.25 * θ[i]!);
  };
}

for (const scale of ["per-layer", "fused", "momentum-scaled"] as const)
  optimizerContract(`one-bit-adam, ${scale}`, {
    create: () => oneBitAdam({ beta1: 0.5, beta2: 0.75, eps: 2 ** -4, weightDecay: 0.25, warmup, scale }),
    oracle: (n, ranks) => oracle(n, ranks, scale),
  });

describe("one-bit-adam", () => {
  it.skipIf(!python)(
    `is Adam without bias correction on the mean gradient, with PyTorch's bits, in as many steps as its warm-up has, and not after them${needsPython}`,
    async () => {
      const [same, steps, n] = [20, 24, 100];
      const start = noise(n, 7);
      const rows = (rank: number) => Array.from({ length: steps }, (_, t) => [...noise(n, t, rank)]);
      const { visited } = await runPython(
        `
θ, m, v, after = inputs["start"], torch.zeros(${n}), torch.zeros(${n}), []
for g in inputs["G"].sum(1) * 0.5:
    m = m * 0.9 + g * (1 - 0.9)
    v = v * 0.999 + g * (1 - 0.999) * g
    root = v.double().sqrt().float()  # torch's own in f32 is not always the nearest
    θ = θ - 0.01 * (m / (root + 1e-8) + 0.1 * θ)
    after.append(θ)
outputs["visited"] = torch.stack(after)`,
        {
          start: fromTypedArray(start),
          G: fromTypedArray(
            Float32Array.from(Array.from({ length: steps }, (_, t) => [0, 1].flatMap((r) => rows(r)[t]!)).flat()),
            [steps, 2, n],
          ),
        },
      );
      const expected = (await visited!.toTypedArray()) as Float32Array;
      const algorithm = () => oneBitAdam({ warmup: same, weightDecay: 0.1 });
      for (const after of await onRanks(2, (group) =>
        trajectory(group, algorithm(), rows(group.rank), { start: [...start], lr: 0.01 }),
      ))
        for (const [t, θ] of after.entries()) {
          const bits = [...expected.subarray(t * n, (t + 1) * n)];
          if (t < same) expect(θ, `step ${t}`).toEqual(bits);
          else expect(θ, `step ${t}`).not.toEqual(bits);
        }
    },
  );

  it("leaves an element without a gradient in the warm-up where it is, also when it gets one later", async () => {
    const gradients = [0, 0, 0, 0, 1, 1].map((late) => [0.5, -0.25, 0, late]);
    const [rows] = await onRanks(2, (group) =>
      trajectory(group, oneBitAdam({ warmup: 2 }), gradients, { start: [1, 2, 3, 4] }),
    );
    for (const [, , never, late] of rows!) expect([never, late]).toEqual([3, 4]);
    expect(rows!.at(-1)![0]).toBeLessThan(1);
  });

  it("sends floats for `warmup` steps, and then a thirty-second of them", async () => {
    const sent = await onRanks(2, async (group) => {
      const bytes: number[] = [];
      const algorithm = oneBitAdam({ warmup: 4, beta2: 0.9 });
      await trajectory(group, algorithm, 8, {
        after: (optimizer: Optimizer) => {
          bytes.push(optimizer.bytesSent(optimizer.steps - 1));
        },
      });
      return bytes;
    });
    for (const bytes of sent) {
      expect(bytes.slice(0, 4)).toEqual([800, 800, 800, 800]);
      for (const each of bytes.slice(4)) expect(each).toBeLessThan(800 / 20);
    }
  });

  it("ends its warm-up at the second look where gradients are as large as at the start", async () => {
    await onRanks(1, async (group) => {
      const same = Array.from({ length: 25 }, () => [2, -1, 0.5, 3]);
      let end: unknown;
      await trajectory(group, oneBitAdam({ beta2: 0.9 }), same, {
        after: async (optimizer: Optimizer) => {
          end = (await optimizer.state()).scalars["compressesFrom.weight"];
        },
      });
      expect(end).toBe(20);
    });
  });

  it("ends its warm-up by itself when the variance is stable, on every rank at the same step", async () => {
    const steps = await onRanks(3, async (group) => {
      const scalars: unknown[] = [];
      await trajectory(group, oneBitAdam({ beta2: 0.9 }), 60, {
        after: async (optimizer: Optimizer) => {
          scalars.push((await optimizer.state()).scalars["compressesFrom.weight"]);
        },
      });
      return scalars;
    });
    const [first] = steps;
    for (const each of steps) expect(each).toEqual(first);
    expect(first![0]).toBe(-1);
    const end = first!.at(-1) as number;
    expect(end % 10).toBe(0); // looked at every 1/(1 − β₂) steps
    expect(end).toBeGreaterThan(10); // two looks at least
    expect(first![end - 2]).toBe(-1);
    expect(first![end - 1]).toBe(end);
  });
});
