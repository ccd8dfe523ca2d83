import { type Group, loopback } from "@terse/collectives";
import type { Dataset } from "@terse/data";
import type { Model } from "@terse/models";
import {
  type Algorithm,
  distributedLion,
  type Layer,
  lionCub,
  Optimizer,
  type OptimizerOptions,
  signsgd,
  signum,
} from "@terse/optimizers";
import { Arena, fromTypedArray, Linear, Module, noGrad, scope, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { takeStep } from "../take-step.ts";
import { chanceOfTie } from "./agreement.ts";
import { isBetterMeasuredNext, measure } from "./measure.ts";
import { compareUpdates, measureUpdate } from "./update.ts";
import { distancesOf, emptySample, sampleOf } from "./update-sample.ts";

describe("votes of ranks whose updates have nothing in common", () => {
  const n = 200_000;
  const layer = { names: ["layer"], counts: [n], lengths: [n], step: 3 };

  /** A sample of each rank with independent elements. */
  function independent(ranks: number, draw: () => number) {
    return Array.from({ length: ranks }, () => {
      const sample = emptySample([n]);
      sample.c.set(sample.m.fill(0).map(draw));
      const sizes = sample.c.map(Math.abs);
      sample.c[n] = sizes.reduce((most, size) => Math.max(most, size), 0);
      sample.means[0] = sizes.reduce((sum, size) => sum + size / n, 0);
      return sample;
    });
  }

  /** Uniform numbers from 0 to 1, the same in every test (a linear congruential generator modulo 2³²). */
  function uniform(): () => number {
    let state = 12345;
    return () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return (state + 0.5) / 2 ** 32;
    };
  }
  const normal = () => {
    const next = uniform();
    return () => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next());
  };
  const laplace = () => {
    const next = uniform();
    return () => -Math.log(next()) * (next() < 0.5 ? -1 : 1);
  };

  // Shares in percent of a simulation in NumPy; the normal ones are what the paper's Table 2 has for a GPT.
  it.each([
    { ranks: 4, distribution: "normal", draw: normal(), match: 58.2, flip: 4.3, ties: 37.5 },
    { ranks: 8, distribution: "normal", draw: normal(), match: 64.6, flip: 8.1, ties: 27.3 },
    { ranks: 4, distribution: "Laplace", draw: laplace(), match: 56.4, flip: 6.3, ties: 37.3 },
    { ranks: 8, distribution: "Laplace", draw: laplace(), match: 61.4, flip: 11.3, ties: 27.3 },
  ])("match, flip and tie as chance has it: $ranks ranks, $distribution", ({ ranks, draw, match, flip, ties }) => {
    const { model } = compareUpdates(independent(ranks, draw), layer);
    const percent = (key: string) => 100 * (model[key] as number);
    expect(percent("update/match")).toBeCloseTo(match, 0);
    expect(percent("update/flip")).toBeCloseTo(flip, 0);
    expect(percent("update/ties")).toBeCloseTo(ties, 0);
    expect(model["update/zeros"]).toBe(0);
    expect(100 * chanceOfTie(ranks)).toBeCloseTo(ranks === 4 ? 37.5 : 27.34, 2);
  });

  // In the same simulation, of NumPy: match, flip and ties of levels that the ranks add up.
  it.each([
    { name: "l1 4 bits", shares: [93.5, 3.0, 3.5] },
    { name: "l1 5 bits", shares: [95.3, 3.1, 1.6] },
    { name: "l1 8 bits", shares: [96.6, 3.2, 0.2] },
    { name: "linf 4 bits", shares: [86.0, 4.7, 9.3] },
    { name: "linf 8 bits", shares: [98.4, 1.1, 0.5] },
    { name: "linf-without-zero 4 bits", shares: [84.8, 6.3, 8.9] },
    { name: "linf-logarithmic 4 bits", shares: [92.0, 8.0, 0.0] },
    { name: "linf-logarithmic 8 bits", shares: [92.1, 7.9, 0.0] },
  ])("has more matches with levels: 8 ranks, $name", ({ name, shares }) => {
    const { model } = compareUpdates(independent(8, normal()), layer);
    const place = (model["quantizers/names"] as string[]).indexOf(name);
    for (const [i, key] of ["match", "flip", "ties"].entries()) {
      const share = 100 * (model[`quantizers/${key}`] as number[])[place]!;
      expect(Math.abs(share - shares[i]!), key).toBeLessThan(1); // linf's scale is one random number, the largest
    }
  });
});

async function onRanks<T>(size: number, task: (group: Group) => Promise<T>): Promise<T[]> {
  return Promise.all(
    loopback(size).map(async (group) => {
      await using closing = group;
      return await task(closing);
    }),
  );
}

/** What a step of one rank began with, by the place of its vector in the arena. */
interface Begun {
  readonly m: Float32Array;
  readonly g: Float32Array;
  readonly θ: Float32Array;
  readonly scale: number;
}

const floats = async (tensor: Tensor) => (await tensor.toTypedArray()) as Float32Array;

/** The algorithm, which puts what its steps begin with into `begun`. */
const recorded = (algorithm: Algorithm, begun: Map<number, Begun>): Algorithm => ({
  ...algorithm,
  async step(θ, g, state, exchange, context) {
    const copy = (of: Tensor) => of.flatten().clone().keep();
    const copies = noGrad(() => [state.elements!["m"]!, g, θ].map(copy));
    const whole = algorithm.step(θ, g, state, exchange, context);
    const [m, gradient, before] = (await Promise.all(copies.map(floats))) as [Float32Array, Float32Array, Float32Array];
    for (const tensor of copies) tensor.dispose();
    begun.set(context.vector.offset, { m, g: gradient, θ: before, scale: context.gradientScale });
    await whole;
  },
});

class Network extends Module {
  readonly first: Linear = new Linear(12, 40);
  readonly last: Linear = new Linear(40, 7);

  loss({ x }: { x: Tensor }): Tensor {
    return this.last.forward(this.first.forward(x).silu()).square().mean();
  }
}

/** Takes steps of a real training with two micro-batches each, and measures after the last one. */
async function trained<T>(
  group: Group,
  { steps, ...options }: OptimizerOptions & { steps: number },
  look: (optimizer: Optimizer, begun: ReadonlyMap<number, Begun>, layers: readonly Layer[]) => Promise<T>,
): Promise<T> {
  const begun = new Map<number, Begun>();
  const network = new Network();
  const values = Float32Array.from({ length: network.parameterCount() }, (_, i) => Math.sin(1 + i) / 3);
  const arena = new Arena(network);
  for (const { offset, length } of arena.segments)
    noGrad(() => arena.parameters.narrow(0, offset, length).copy_(fromTypedArray(values.subarray(0, length))));
  const algorithm = recorded(options.algorithm, begun);
  await using optimizer = new Optimizer(arena, group, { ...options, algorithm, bucket: 400, compareEvery: 1 });
  let drawn = 0;
  const data = {
    next: async (count: number) =>
      Array.from({ length: count }, (_, i) => {
        const x = Float32Array.from({ length: 36 }, (_, j) => Math.cos((j + 1) * (++drawn + 17 * group.rank)));
        return { x: fromTypedArray(x, [3, 12]), last: i + 1 === count, share: 1 };
      }),
  } as unknown as Pick<Dataset, "next">;
  const model = network as unknown as Model;
  const forward = <R>(body: () => R) => body();
  for (let step = 0; step < steps; step++)
    await takeStep({ model, arena, data, optimizer, forward, accumulate: 2 }, 0.01);
  return scope(() => look(optimizer, begun, optimizer.layers()));
}

/** Of a layer: where its vector begins, and its own elements of an array of that vector. */
function partOf(begun: ReadonlyMap<number, Begun>, { offset, length }: Layer["segment"]) {
  const start = Math.max(...[...begun.keys()].filter((at) => at <= offset));
  return { ...begun.get(start)!, part: (of: Float32Array) => of.subarray(offset - start, offset - start + length) };
}

const methods: { what: string; algorithm: () => Algorithm; β1: number }[] = [
  { what: "lion-cub", algorithm: () => lionCub(), β1: 0.9 },
  { what: "lion-cub with β₂ 0.95", algorithm: () => lionCub({ beta2: 0.95 }), β1: 0.9 },
  { what: "lion-cub with levels", algorithm: () => lionCub({ bits: 4 }), β1: 0.9 },
  { what: "lion-cub that holds zeros", algorithm: () => lionCub({ zero: "hold" }), β1: 0.9 },
  { what: "distributed-lion", algorithm: () => distributedLion({ beta1: 0.8 }), β1: 0.8 },
  { what: "distributed-lion by averages", algorithm: () => distributedLion({ vote: "average" }), β1: 0.9 },
  { what: "signum", algorithm: () => signum({ beta: 0.7 }), β1: 0.7 },
  { what: "signsgd", algorithm: () => signsgd(), β1: 0 },
];

const surroundings = [
  { ranks: 2, with: "without a clip", options: {} },
  { ranks: 3, with: "by the global norm", options: { clip: 0.05 } },
  { ranks: 4, with: "by bucket, with overlap", options: { clip: 0.03, clipBy: "bucket", overlap: "on" } },
  { ranks: 2, with: "by the step before, with overlap", options: { clip: 0.05, clipBy: "previous", overlap: "on" } },
] as const;

describe.each(methods)("after steps of $what", ({ algorithm, β1 }) => {
  it.each(surroundings)("every rank's update is what it has voted with: $ranks ranks, $with", async (around) => {
    const all = await onRanks(around.ranks, (group) =>
      trained(group, { algorithm: algorithm(), steps: 5, ...around.options }, async (_, begun, layers) => {
        const distances = distancesOf(layers);
        expect(distances).toEqual(layers.map(() => 1)); // the whole model is sampled
        const { c, means } = await sampleOf(layers, distances);
        const direct: number[][] = [];
        for (const [i, { segment }] of layers.entries()) {
          const { m, g, scale, part } = partOf(begun, segment);
          const own = [...part(m)].map((value, j) => β1 * value + (1 - β1) * scale * part(g)[j]!);
          direct.push(own);
          const at = layers.slice(0, i).reduce((sum, before) => sum + before.segment.length + 1, 0);
          const largest = Math.max(...own.map(Math.abs));
          for (const [j, value] of [...own, largest].entries())
            expect(Math.abs(c[at + j]! - value), `${segment.name} ${j}`).toBeLessThan(1e-6 * largest);
          const mean = own.reduce((sum, value) => sum + Math.abs(value), 0) / own.length;
          expect(Math.abs(means[i]! - mean)).toBeLessThan(1e-6 * mean);
          if ("clip" in around.options) expect(scale).toBeLessThan(1);
        }
        const measured = await measureUpdate(group, layers, 4);
        return { direct: direct.flat(), lengths: direct.map(({ length }) => length), measured };
      }),
    );
    const [first] = all;
    const model = first!.measured.model;
    const votes = all.map(({ direct }) => direct);
    const truth = votes[0]!.map((_, i) => Math.sign(votes.reduce((sum, c) => sum + c[i]!, 0)));
    const vote = truth.map((_, i) => Math.sign(votes.reduce((sum, c) => sum + Math.sign(c[i]!), 0)));
    const share = (is: (i: number) => boolean) => truth.filter((_, i) => is(i)).length / truth.length;
    expect(model["update/match"]).toBeCloseTo(
      share((i) => truth[i] !== 0 && vote[i] === truth[i]),
      9,
    );
    expect(model["update/flip"]).toBeCloseTo(
      share((i) => truth[i] !== 0 && vote[i] === -truth[i]!),
      9,
    );
    expect(model["update/ties"]).toBeCloseTo(
      share((i) => truth[i] !== 0 && vote[i] === 0),
      9,
    );
    expect(model["update/zeros"]).toBeCloseTo(
      share((i) => truth[i] === 0),
      9,
    );
    expect(model["update/elements"]).toBe(truth.length);
    for (const { measured } of all.slice(1)) expect(measured).toEqual({ model: {} });
  });
});

it("says what the run's own levels did", async () => {
  const [first] = await onRanks(4, (group) =>
    trained(group, { algorithm: lionCub({ bits: 4 }), steps: 5 }, async (_, begun, layers) => {
      const measured = await measureUpdate(group, layers, 4);
      const votes: number[] = []; // θ has moved against them
      for (const { segment, θ } of layers) {
        const { θ: before, part } = partOf(begun, segment);
        const after = await floats(θ.contiguous());
        votes.push(...[...part(before)].map((value, i) => Math.sign(value - after[i]!)));
      }
      const { c } = await sampleOf(layers, distancesOf(layers));
      await group.allReduce(c);
      const truth = layers.flatMap(({ segment: { length } }, i) => {
        const at = layers.slice(0, i).reduce((sum, { segment }) => sum + segment.length + 1, 0);
        return [...c.subarray(at, at + length)].map(Math.sign);
      });
      const share = (is: (vote: number, truth: number) => boolean) =>
        votes.filter((vote, i) => is(vote, truth[i]!)).length / votes.length;
      return {
        model: measured.model,
        moved: [
          share((vote, truth) => vote === truth),
          share((vote, truth) => vote === -truth),
          share((vote) => vote === 0),
        ],
      };
    }),
  );
  const { model, moved } = first!;
  const place = (model["quantizers/names"] as string[]).indexOf("l1 4 bits");
  const shares = ["match", "flip", "ties"].map((key) => (model[`quantizers/${key}`] as number[])[place]!);
  for (const [i, value] of shares.entries()) expect(Math.abs(value - moved[i]!)).toBeLessThan(0.005);
  expect(moved[0]).toBeGreaterThan(0.5);
});

describe("a sample", () => {
  const layerOf = (shape: readonly number[]) =>
    ({ segment: { shape, length: shape.reduce((a, b) => a * b) } }) as unknown as Layer;

  it("has all of small layers, some of large ones, and 65,536 elements at most", () => {
    const blocks = Array.from({ length: 12 }, () => [[768], [768], [2304, 768], [768, 768], [3072, 768], [768, 3072]]);
    const layers = [[50_257, 768], [1024, 768], ...blocks.flat(), [768]].map(layerOf);
    const distances = distancesOf(layers);
    const counts = layers.map(({ segment: { length } }, i) => Math.ceil(length / distances[i]!));
    expect(counts.reduce((a, b) => a + b)).toBeLessThanOrEqual(65_536);
    expect(counts.reduce((a, b) => a + b)).toBeGreaterThan(40_000);
    for (const [i, { segment }] of layers.entries()) expect(counts[i]).toBeGreaterThan(Math.min(segment.length, 380));
    expect(counts[0]).toBeGreaterThan(10_000);
  });

  it("goes through all columns of a matrix", () => {
    for (const shape of [
      [4096, 512],
      [2048, 768],
      [1000, 1000],
      [512, 512, 3, 3],
    ]) {
      const [distance] = distancesOf([layerOf(shape), layerOf([1 << 22, 64])]);
      const length = shape.reduce((a, b) => a * b);
      const width = length / shape[0]!;
      const columns = new Set(Array.from({ length: Math.ceil(length / distance!) }, (_, i) => (i * distance!) % width));
      expect(columns.size, String(shape)).toBe(width);
    }
  });
});

describe("a line of measures", () => {
  const line = async (group: Group, optimizer: Optimizer, step: number) => {
    const before = group.sent().bytes;
    const measured = await measure(group, optimizer, { step, votes: undefined });
    return { measured, sent: group.sent().bytes - before };
  };

  it("has a list by layer, with null for layers on which no rank votes, and all bytes that were sent", async () => {
    const groups = [
      { match: ({ name }: { name: string }) => name === "last.weight", algorithm: lionCub({ beta2: 0 }) },
    ];
    const all = await onRanks(3, (group) =>
      trained(group, { algorithm: lionCub(), groups, steps: 2 }, (optimizer) => line(group, optimizer, 1)),
    );
    expect(all.slice(1).map(({ measured }) => measured)).toEqual([undefined, undefined]);
    const { measured } = all[0]!;
    expect(measured!["layers/names"]).toEqual(["first.weight", "first.bias", "last.weight", "last.bias"]);
    const number = expect.any(Number);
    for (const key of ["match", "ties", "update_p50", "update_largest", "momentum_deviation"])
      expect(measured![`layers/${key}`], key).toEqual([number, number, null, number]);
    expect(measured!["votes/chance_ties"]).toBe(0);
    expect(measured!["measure_bytes"]).toBe(all.reduce((sum, { sent }) => sum + sent, 0));
    expect(measured!["measure_seconds"]).toBeGreaterThan(0);
  });

  it("waits for a step after which momenta are the ranks' own, where there is one", async () => {
    const inSteps = async (momentumSync: object) => {
      const [waits] = await onRanks(2, (group) =>
        trained(
          group,
          { algorithm: lionCub({ momentumSync: { segments: "all", ...momentumSync } }), steps: 1 },
          async (optimizer) => Array.from({ length: 6 }, (_, step) => isBetterMeasuredNext(optimizer, step)),
        ),
      );
      return waits;
    };
    expect(await inSteps({ every: 3 })).toEqual([false, false, true, false, false, true]);
    expect(await inSteps({ every: 3, late: true })).toEqual([false, false, false, true, false, false]);
    expect(await inSteps({ every: 1 })).toEqual(Array(6).fill(false));
  });

  it("does not tell of updates where all momenta have just been averaged", async () => {
    const momentumSync = { segments: "all", every: 2 } as const;
    for (const [steps, has] of [
      [3, true],
      [4, false],
    ] as const) {
      const [first] = await onRanks(2, (group) =>
        trained(group, { algorithm: lionCub({ momentumSync }), steps }, (optimizer) =>
          line(group, optimizer, steps - 1),
        ),
      );
      expect(first!.measured!["momentum/drift"]).toBeDefined();
      expect("update/match" in first!.measured!).toBe(has);
    }
  });
});
