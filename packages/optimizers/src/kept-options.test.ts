/** No option that a resumed run changes is ignored: it takes effect, or `refusedOptions` names it. */
import type { Group } from "@terse/collectives";
import { parseOptions } from "@terse/options";
import { Arena, fromTypedArray, Module, noGrad, Parameter } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import {
  type Algorithm,
  algorithms,
  compressed,
  gradientCompressions,
  Optimizer,
  refusedOptions,
  sgd,
} from "./index.ts";
import { onRanks } from "./testing/on-ranks.ts";
import { savesOf, stored } from "./testing/stored.ts";

/** Another value of each option, and with which others it counts. */
type Cases = Readonly<Record<string, readonly [to: unknown, beside?: object]>>;

const decay: Cases = { weightDecay: [0.5] };
const betas: Cases = { beta1: [0.5], beta2: [0.5], ...decay };
const adam: Cases = { ...betas, eps: [0.1] };
const votes: Cases = { zero: ["minus"], tie: ["minus"], ...decay };
const sync: Cases = { momentumSync: [{ segments: "all", every: 3 }] };
const ratios: Cases = { minRatio: [5, { maxRatio: 10 }], maxRatio: [0.02] };
const oneBit: Cases = { ...adam, warmup: [5], scale: ["fused"] };
const oneBitLamb: Cases = { ...oneBit, ...ratios, beta3: [0.5] };
const hasMomentum = { momentum: 0.9 };
const levels = { bits: 3 };
const free = { beta2: 0.9, threshold: 10, minFactor: 0.01, maxFactor: 100 }; // of bounds

const ofAlgorithms: Record<keyof typeof algorithms, Cases> = {
  sgd: { momentum: [0.5, hasMomentum], dampening: [0.5, hasMomentum], nesterov: [true, hasMomentum], ...decay },
  signsgd: votes,
  signum: { ...votes, beta: [0.5] },
  adamw: adam,
  lion: { ...betas, zero: ["minus"] },
  lamb: { ...adam, ...ratios, variant: ["deepspeed"] },
  "one-bit-adam": oneBit,
  "lamb-basic-one-bit": oneBitLamb,
  "one-bit-lamb": {
    ...oneBitLamb,
    beta2: [0.5, free],
    minFactor: [1.2],
    maxFactor: [0.7],
    threshold: [0.01, free],
    squareRoot: [true, free],
    decayCorrection: [true, { ...free, weightDecay: 1 }],
  },
  "distributed-lion": { ...betas, ...votes, ...sync, vote: ["average"], maskEvery: [2] },
  "lion-cub": {
    ...betas,
    ...votes,
    ...sync,
    bits: [3],
    sumBits: [6],
    quantizer: ["linf", levels],
    sum: ["direct", levels],
    seed: [1, { ...levels, quantizer: "linf" }],
    maskEvery: [2],
  },
  muon: {
    momentum: [0.5],
    nesterov: [false],
    ...decay,
    nsCoefficients: [[2, -1.5, 0.5]],
    nsSteps: [2],
    nsType: ["bf16", { nsType: "f32" }],
    eps: [1],
    adjustLrFn: ["match_rms_adamw"],
  },
  dion: {
    momentum: [0.5],
    rank: [2],
    orientation: ["longer"],
    orthonormalize: ["cholesky-qr"],
    errorFeedback: [false],
    approximate: ["svd"],
    ...decay,
    eps: [0.9],
    seed: [1],
  },
  "zero-one-adam": {
    ...adam,
    freeze: [5],
    kappa: [4],
    doubling: [4],
    localSteps: [1],
    early: ["buffer"],
    scale: ["fused"],
  },
  demo: {
    decay: [0.5],
    k: [5],
    chunk: [2],
    ...decay,
    sign: [false],
    over: ["senders", { sign: false }],
    rateInMomentum: [true],
  },
};

const ofCompressions: Record<keyof typeof gradientCompressions, Cases> = {
  codec: {
    codec: ["f16"],
    errorFeedback: [false],
    bits: [3, { codec: "l1", bits: 4 }],
    block: [8],
    ratio: [0.5, { codec: "top-k", ratio: 0.1 }],
    k: [2, { codec: "dct-top-k", block: 8, k: 1 }],
    clip: [1, { codec: "terngrad", errorFeedback: false, clip: 2 }],
    seed: [1, { codec: "qsgd", errorFeedback: false, bits: 4 }],
  },
  "ef-signsgd": {},
  qsgd: { bits: [2], bucket: [8], seed: [1] },
  terngrad: { clip: [1], scaler: ["own"], seed: [1] },
  graddrop: { ratio: [0.5], threshold: ["model"] },
  dgc: {
    ratio: [0.5],
    momentum: [0.5],
    nesterov: [true],
    factorMasking: [false, { ratio: 0.1 }],
    clip: [0.1],
    warmup: [8],
    warmupRatios: ["exponential"],
  },
  powersgd: {
    matrixApproximationRank: [2],
    startPowerSGDIter: [5],
    minCompressionRate: [3],
    useErrorFeedback: [false],
    warmStart: [false],
    randomSeed: [1, { warmStart: false }],
  },
};

/** Warm-ups and the like until step 4, so that one save is made in them and one after them. */
const phases: Record<string, object> = {
  "one-bit-adam": { warmup: 4 },
  "lamb-basic-one-bit": { warmup: 4 },
  "one-bit-lamb": { warmup: 4 },
  "zero-one-adam": { freeze: 4, kappa: 1, doubling: 2, localSteps: 4 },
  demo: { k: 1, chunk: 4 },
  codec: { codec: "int8" },
  dgc: { warmup: 4 },
  powersgd: { startPowerSGDIter: 4 },
};

const ranks = 4; // votes can tie, and be more than one for or against

class Matrices extends Module {
  readonly first: Parameter = matrix(8, 12);
  readonly second: Parameter = matrix(400, 4); // many rows: cholesky-qr
}

function matrix(rows: number, columns: number): Parameter {
  const values = Float32Array.from({ length: rows * columns }, (_, i) => Math.sin(1 + i * rows) / 2);
  return new Parameter(fromTypedArray(values, [rows, columns]), { role: "matrix" });
}

interface Training {
  readonly arena: Arena;
  readonly optimizer: Optimizer;
}

function open(group: Group, algorithm: Algorithm): Training {
  const arena = new Arena(new Matrices());
  return { arena, optimizer: new Optimizer(arena, group, { algorithm }) };
}

/** Some gradients are 0, always or now and then, and some cancel each other. */
async function advance({ arena, optimizer }: Training, rank: number, steps: number) {
  const sent: number[] = [];
  for (const until = optimizer.steps + steps; optimizer.steps < until; ) {
    const t = optimizer.steps;
    const values = Float32Array.from({ length: arena.gradients.length }, (_, i) => {
      if (i % 5 === 2 || (i % 5 === 3 && t < 7)) return 0;
      return i % 5 === 4 ? 1 - 2 * (rank % 2) : Math.sin(i * 12.9 + t * 78.2 + rank);
    });
    noGrad(() => arena.gradients.zero_());
    for (const { offset, length } of arena.segments)
      noGrad(() =>
        arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(values.subarray(offset, offset + length))),
      );
    sent.push((await optimizer.step({ lr: 0.01 })).bytes);
  }
  return { θ: ((await arena.parameters.toTypedArray()) as Float32Array).slice(), sent };
}

/** Rank 0's parameters after `at` steps with some options and 10 with others, and the bytes of each step. */
async function resumed(create: (options: object) => Algorithm, at: number, before: object, after: object) {
  const [first] = await onRanks(ranks, async (group) => {
    const training = open(group, create(before));
    const { θ } = await advance(training, group.rank, at);
    const next = open(group, create(after));
    noGrad(() => next.arena.parameters.copy_(fromTypedArray(θ)));
    const [old, now] = [await training.optimizer.state(), await next.optimizer.state()];
    const shapes = ({ tensors }: typeof old) => [...tensors].map(([name, { shape }]) => [name, shape]);
    expect(shapes(now)).toEqual(shapes(old));
    await next.optimizer.restore(at, savesOf(group.rank, ranks, await stored(training.optimizer)));
    return advance(next, group.rank, 10);
  });
  return first!;
}

interface Entry {
  readonly options: { readonly entries: object };
}

function everyOption(name: string, entry: Entry, cases: Cases, create: (options: object) => Algorithm): void {
  it(`of ${name} is changed here`, () =>
    expect(Object.keys(cases).sort()).toEqual(Object.keys(entry.options.entries).sort()));

  for (const [option, [to, beside = {}]] of Object.entries(cases))
    it.each([2, 6])(`${name}.${option} takes effect after %i steps, or is refused`, async (at) => {
      const before = withDefaults(entry, { ...phases[name], ...beside });
      const after = withDefaults(entry, { ...phases[name], ...beside, [option]: to });
      const refused = refusedOptions(entry, { before, after, step: at });
      if (refused.size > 0) return expect([...refused.keys()]).toEqual([option]);
      expect(await resumed(create, at, before, after)).not.toEqual(await resumed(create, at, before, before));
    });
}

/** As recipes have them. */
const withDefaults = ({ options }: Entry, given: object): object => parseOptions(options as never, given, "");

describe("an option of an optimizer", () => {
  for (const [name, cases] of Object.entries(ofAlgorithms)) {
    const entry = algorithms[name as keyof typeof algorithms];
    everyOption(name, entry, cases, entry.create as never);
  }
});

describe("an option of a compression of gradients", () => {
  for (const [name, cases] of Object.entries(ofCompressions)) {
    const entry = gradientCompressions[name as keyof typeof gradientCompressions];
    const create = entry.create as (options: object) => Parameters<typeof compressed>[1];
    everyOption(name, entry, cases, (options) => compressed(sgd({ momentum: 0.9 }), create(options)));
  }
});
