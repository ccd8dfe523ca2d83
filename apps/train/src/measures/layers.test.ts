import { loopback } from "@terse/collectives";
import { type Algorithm, adamw, lamb, lion, Optimizer, oneBitLamb } from "@terse/optimizers";
import { Arena, fromTypedArray, Linear, noGrad } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { measure } from "./measure.ts";

const [lr, β1, β2, ε, λ] = [0.01, 0.9, 0.999, 1e-6, 0.01];
const gradient = (i: number, step: number) => Math.cos(1 + i * (step + 2));

/** The line after so many steps of one rank, and θ, which begins with sines. */
async function measured(algorithm: Algorithm, steps: number) {
  const [group] = loopback(1);
  const model = new Linear(5, 3);
  const arena = new Arena(model);
  const fill = (of: typeof arena.parameters, value: (i: number) => number) => {
    for (const { offset, length } of arena.segments) {
      const values = Float32Array.from({ length }, (_, i) => value(offset + i));
      noGrad(() => of.narrow(0, offset, length).copy_(fromTypedArray(values)));
    }
  };
  fill(arena.parameters, (i) => Math.sin(1 + i));
  await using optimizer = new Optimizer(arena, group!, { algorithm });
  for (let step = 0; step < steps; step++) {
    fill(arena.gradients, (i) => gradient(i, step));
    await optimizer.step({ lr });
  }
  const line = await measure(group!, optimizer, { step: steps - 1, votes: undefined });
  const θ = [...((await arena.parameters.toTypedArray()) as Float32Array)];
  const layers = arena.segments.map(({ offset, length }) => Array.from({ length }, (_, i) => offset + i));
  await group!.close();
  return { line, layers: layers.map((places) => ({ places, θ: places.map((i) => θ[i]!) })) };
}

/** m and v of an element after so many steps, in float64. */
function moments(i: number, steps: number): { m: number; v: number } {
  let [m, v] = [0, 0];
  for (let step = 0; step < steps; step++) {
    m = β1 * m + (1 - β1) * gradient(i, step);
    v = β2 * v + (1 - β2) * gradient(i, step) ** 2;
  }
  return { m, v };
}

const norm = (values: readonly number[]) => Math.hypot(...values);
const about = (value: number) => expect.closeTo(value, 5);

describe("the layers after a step, on a single rank too", () => {
  it("have the norms of m and v, and LAMB's ratio", async () => {
    const { line, layers } = await measured(lamb({ maxRatio: 10 }), 4);
    expect(line!["layers/names"]).toEqual(["weight", "bias"]);
    const each = layers.map(({ places, θ }) => {
      const all = places.map((i) => moments(i, 4));
      const u = all.map(({ m, v }, i) => m / (Math.sqrt(v) + ε) + λ * θ[i]!);
      return { m: norm(all.map(({ m }) => m)), v: norm(all.map(({ v }) => v)), ratio: norm(θ) / norm(u) };
    });
    expect(line!["layers/momentum_norms"]).toEqual(each.map(({ m }) => about(m)));
    expect(line!["layers/variance_norms"]).toEqual(each.map(({ v }) => expect.closeTo(v, 7)));
    expect(line!["layers/ratios"]).toEqual(each.map(({ ratio }) => about(ratio)));
    expect(line!["layers/ratios"]).not.toEqual([0.01, 0.01]);
    for (const key of ["layers/changes", "measure_bytes", "update/match", "votes/ties"])
      expect(line).not.toHaveProperty(key);
    expect(line!["measure_seconds"]).toBeGreaterThan(0);
  });

  it("have LAMB's ratio in its bounds, and corrected as Apex does", async () => {
    const { line } = await measured(lamb({ maxRatio: 0.02 }), 4);
    expect(line!["layers/ratios"]).toEqual([0.02, 0.02]);
    const { line: apex, layers } = await measured(lamb({ variant: "apex" }), 4);
    const ratios = layers.map(({ places, θ }) => {
      const u = places.map((i, j) => {
        const { m, v } = moments(i, 4);
        return m / (1 - β1 ** 4) / (Math.sqrt(v / (1 - β2 ** 4)) + ε) + λ * θ[j]!;
      });
      return norm(θ) / norm(u);
    });
    expect(apex!["layers/ratios"]).toEqual(ratios.map(about));
  });

  it("have the ratios and the changes that 1-bit LAMB keeps", async () => {
    const { line: warming } = await measured(oneBitLamb({ warmup: 8, minRatio: 0.2, maxRatio: 0.2 }), 4);
    expect(warming!["layers/changes"]).toEqual([1, 1]);
    const mean = 0.2 * (1 - 0.9 ** 4);
    expect(warming!["layers/ratios"]).toEqual([about(mean), about(mean)]);
    const { line } = await measured(oneBitLamb({ warmup: 2 }), 6); // r moves by a tenth a step at most
    const changes = line!["layers/changes"] as number[];
    for (const r of changes) expect(r).not.toBe(1);
    for (const r of changes) expect(r).toBeGreaterThan(0.9 ** 4 - 1e-6);
    for (const r of changes) expect(r).toBeLessThan(1.1 ** 4 + 1e-6);
  });

  it("have what their method keeps, and nothing else", async () => {
    const keys = async (algorithm: Algorithm) =>
      Object.keys((await measured(algorithm, 2)).line!).filter((key) => key.startsWith("layers/"));
    expect(await keys(adamw())).toEqual(["layers/names", "layers/momentum_norms", "layers/variance_norms"]);
    expect(await keys(lion())).toEqual(["layers/names", "layers/momentum_norms"]);
  });
});
