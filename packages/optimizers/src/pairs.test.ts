/** Any two optimizers on one model: each works as if it were alone, and their messages travel together. */
import type { Group } from "@terse/collectives";
import { Arena, fromTypedArray, Module, noGrad, Parameter } from "@terse/tensor";
import { beforeAll, describe, expect, it } from "vitest";
import { type Algorithm, algorithms, lion, Optimizer } from "./index.ts";
import { onRanks } from "./testing/on-ranks.ts";

const names = Object.keys(algorithms) as (keyof typeof algorithms)[];
const pairs = names.flatMap((a, i) => names.slice(i).map((b): [typeof a, typeof b] => [a, b]));

const steps = 4;

/** With a warm-up that ends within these steps. */
function create(name: keyof typeof algorithms, options: object = {}): Algorithm {
  const { create, options: schema } = algorithms[name];
  return (create as (options: object) => Algorithm)({ ...("warmup" in schema.entries && { warmup: 2 }), ...options });
}

/** Two layers of two matrices, and a vector. */
class Layers extends Module {
  readonly first: Parameter = matrix(6, 11);
  readonly second: Parameter = matrix(16, 8);
  readonly vector: Parameter = new Parameter(matrix(1, 70).detach().view([70]), { role: "vector" });
  readonly third: Parameter = matrix(11, 6);
  readonly fourth: Parameter = matrix(5, 5);
}

function matrix(rows: number, columns: number): Parameter {
  const values = Float32Array.from({ length: rows * columns }, (_, i) => Math.sin(1 + i * rows) / 2);
  return new Parameter(fromTypedArray(values, [rows, columns]), { role: "matrix" });
}

/** The parameters after some steps, where `a` has the first two matrices and `b` the others. The vector goes to one that takes it. */
async function train(group: Group, a: Algorithm, b: Algorithm): Promise<Record<string, number[]>> {
  const arena = new Arena(new Layers());
  const ofVector = [b, a].find(({ takes }) => takes === undefined) ?? lion();
  await using optimizer = new Optimizer(arena, group, {
    algorithm: b,
    groups: [
      { match: ({ name }) => name === "first" || name === "second", algorithm: a, lrFactor: 2 },
      { match: ({ name }) => name === "vector", algorithm: ofVector },
    ],
    bucket: 200, // two or three of them
    compareEvery: 1, // the ranks are the same, bit for bit
  });
  for (let step = 0; step < steps; step++) {
    for (const [k, { offset, length }] of arena.segments.entries()) {
      const g = Float32Array.from({ length }, (_, i) => Math.cos(i * (k + 2) + 3 * step + 0.7 * group.rank));
      noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(g)));
    }
    const closed = optimizer.bytesSent();
    const { bytes, messages } = await optimizer.step({ lr: 2 ** -8 });
    expect(bytes - 32 * messages, `bytes of step ${step}`).toBe(closed);
  }
  const θ = (await arena.parameters.toTypedArray()) as Float32Array;
  return Object.fromEntries(
    arena.segments.map(({ name, offset, length }) => [name, [...θ.slice(offset, offset + length)]]),
  );
}

describe("a pair of optimizers", () => {
  const alone = new Map<string, Record<string, number[]>>();
  beforeAll(async () => {
    for (const name of names) {
      const [result] = await onRanks(2, (group) => train(group, create(name), create(name)));
      alone.set(name, result!);
    }
  });

  it.each(pairs)(
    "%s and %s: each as alone, the same on both ranks, with the bytes of the closed form",
    async (a, b) => {
      const [here, there] = await onRanks(2, (group) => train(group, create(a), create(b)));
      expect(there).toEqual(here);
      for (const name of ["first", "second"]) expect(here![name], name).toEqual(alone.get(a)![name]);
      for (const name of ["third", "fourth"]) expect(here![name], name).toEqual(alone.get(b)![name]);
    },
  );

  it.each(names.filter((name) => "scale" in algorithms[name].options.entries))(
    "%s with one magnitude for the whole model cannot share it, and says what lets it",
    async (name) => {
      const outcomes = await onRanks(2, (group) =>
        train(group, create(name, { scale: "fused" }), lion()).catch((error: unknown) => String(error)),
      );
      for (const outcome of outcomes)
        expect(outcome).toMatch(/cannot share it with parameter groups; .*scale: per-layer/);
    },
  );
});
