/** Any two optimizers on one model: each works as if it were alone, and their messages travel together. */
import type { Group } from "@terse/collectives";
import { Arena, fromTypedArray, Module, Parameter, type Tensor } from "@terse/tensor";
import { beforeAll, describe, expect, it } from "vitest";
import { type Algorithm, algorithms, lion, Optimizer, type OptimizerOptions } from "./index.ts";
import { onRanks } from "./testing/on-ranks.ts";

const names = Object.keys(algorithms) as (keyof typeof algorithms)[];
const pairs = names.flatMap((a, i) => names.slice(i).map((b): [typeof a, typeof b] => [a, b]));

const steps = 8;

/** Phases so short that each of them is reached; with `freeze: 4` the local step is the last but one. */
const phases: Record<string, object> = {
  "one-bit-adam": { warmup: 4 },
  "lamb-basic-one-bit": { warmup: 4 },
  "one-bit-lamb": { warmup: 4 },
  "zero-one-adam": { freeze: 4, kappa: 1, doubling: 2, localSteps: 4 },
};

function create(name: keyof typeof algorithms, options: object = {}): Algorithm {
  return (algorithms[name] as (options: object) => Algorithm)({ ...phases[name], ...options });
}

/** Two layers of two matrices, whose columns two ranks can share, and a vector. */
class Layers extends Module {
  readonly first: Parameter = matrix(6, 10);
  readonly second: Parameter = matrix(16, 8);
  readonly vector: Parameter = new Parameter(matrix(1, 70).detach().view([70]), { role: "vector" });
  readonly third: Parameter = matrix(10, 6);
  readonly fourth: Parameter = matrix(5, 4);

  /** Its gradients do not depend on the parameters. */
  loss(step: number, rank: number): Tensor {
    const terms = this.namedParameters().map(([, parameter], k) => {
      const g = Float32Array.from({ length: parameter.length }, (_, i) =>
        Math.cos(i * (k + 2) + 3 * step + 0.7 * rank),
      );
      return parameter.mul(fromTypedArray(g, parameter.shape)).sum();
    });
    return terms.reduce((sum, term) => sum.add(term));
  }
}

function matrix(rows: number, columns: number): Parameter {
  const values = Float32Array.from({ length: rows * columns }, (_, i) => Math.sin(1 + i * rows) / 2);
  return new Parameter(fromTypedArray(values, [rows, columns]), { role: "matrix" });
}

type Settings = Pick<OptimizerOptions, "overlap" | "parallel" | "bucket">;

/** `a` has the first two matrices and `b` the others. The vector goes to one that takes it. */
function open(group: Group, a: Algorithm, b: Algorithm, settings: Settings = {}) {
  const layers = new Layers();
  const arena = new Arena(layers);
  const ofVector = [b, a].find(({ takes }) => takes === undefined) ?? lion();
  const optimizer = new Optimizer(arena, group, {
    algorithm: b,
    groups: [
      { match: ({ name }) => name === "first" || name === "second", algorithm: a, lrFactor: 2 },
      { match: ({ name }) => name === "vector", algorithm: ofVector },
    ],
    bucket: 200, // two or three of them
    compareEvery: 1, // the ranks are the same, bit for bit
    ...settings,
  });
  return { layers, arena, optimizer };
}

/** The parameters after some steps, by name. */
type Trained = Record<string, number[]>;

async function train(group: Group, a: Algorithm, b: Algorithm, settings: Settings = {}): Promise<Trained> {
  const { layers, arena, optimizer } = open(group, a, b, settings);
  await using _ = optimizer;
  for (let step = 0; step < steps; step++) {
    arena.zeroGradients();
    const lr = 2 ** -8;
    const closed = optimizer.bytesSent();
    await optimizer.begin({ lr });
    await layers.loss(step, group.rank).backward();
    const { bytes, messages } = await optimizer.step({ lr });
    expect(bytes - 32 * messages, `bytes of step ${step}`).toBe(closed);
  }
  expect(optimizer.parametersDiffer).toBe(false);
  const θ = (await arena.parameters.toTypedArray()) as Float32Array;
  return Object.fromEntries(
    arena.segments.map(({ name, offset, length }) => [name, [...θ.slice(offset, offset + length)]]),
  );
}

/** All that each sends in a step of a long run. */
it.each(names)("%s goes through all its phases here", async (name) => {
  await onRanks(2, async (group) => {
    await using optimizer = open(group, create(name), create(name)).optimizer;
    const sent = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => optimizer.bytesSent(from + i));
    const here = sent(0, steps);
    expect(here).toEqual(expect.arrayContaining([...sent(steps, 100), ...sent(100_000, 100_100)]));
  });
});

describe("a pair of optimizers", () => {
  const alone = new Map<string, Trained>();
  beforeAll(async () => {
    for (const name of names) {
      const [result] = await onRanks(2, (group) => train(group, create(name), create(name), { overlap: "off" }));
      alone.set(name, result!);
    }
  });

  // With overlap every other one, so that each optimizer is beside others with it and without.
  const cases = pairs.map(([a, b]) => {
    const isOdd = (names.indexOf(a) + names.indexOf(b)) % 2 === 1;
    return [a, b, isOdd ? "on" : "off"] as const;
  });
  it.each([...cases, ...names.map((name) => [name, name, "on"] as const)])(
    "%s and %s: each as alone, the same on both ranks, with the bytes of the closed form, with overlap %s",
    async (a, b, overlap) => {
      const [here, there] = await onRanks(2, (group) => train(group, create(a), create(b), { overlap }));
      expect(there).toEqual(here);
      expectAsAlone(here!, alone.get(a)!, alone.get(b)!);
    },
  );

  it.each(names)("dion over 2 × 2 ranks and %s: each as alone on four ranks, in either order", async (name) => {
    const parallel = { data: 2, weight: 2 };
    const [sharded] = await onRanks(4, (group) => train(group, create("dion"), create("dion"), { parallel }));
    const [other] = await onRanks(4, (group) =>
      train(group, create(name), create(name), name === "dion" ? { parallel } : {}),
    );
    for (const [a, b] of [
      ["dion", name],
      [name, "dion"],
    ] as const) {
      const [here, ...others] = await onRanks(4, (group) => train(group, create(a), create(b), { parallel }));
      for (const there of others) expect(there).toEqual(here);
      expectAsAlone(here!, a === "dion" ? sharded! : other!, b === "dion" ? sharded! : other!);
    }
  });

  it.each(names.filter((name) => "tie" in algorithms[name].options.entries))(
    "%s with another tie in each group: votes travel together in the steps in which both are alike",
    async (name) => {
      const [plus, alternate] = [create(name, { tie: "plus" }), create(name, { tie: "alternate" })];
      for (const ranks of [4, 5]) {
        const [here, ...others] = await onRanks(ranks, (group) => train(group, plus, alternate, { bucket: 1000 }));
        for (const there of others) expect(there).toEqual(here);
      }
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

/** Expects the first two matrices as they are when trained by one algorithm alone, the others as by the other alone. */
function expectAsAlone(both: Trained, a: Trained, b: Trained): void {
  for (const name of ["first", "second"]) expect(both[name], name).toEqual(a[name]);
  for (const name of ["third", "fourth"]) expect(both[name], name).toEqual(b[name]);
}
