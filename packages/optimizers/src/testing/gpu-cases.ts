/**
 * For tests on GPUs: every optimizer and every compression of gradients with each of its options, and a short training
 * with each.
 */
import { createHash } from "node:crypto";
import { codecsOfGradients } from "@terse/codecs";
import { loopback } from "@terse/collectives";
import { dense, hierarchical } from "@terse/exchange";
import { Arena, fromTypedArray, Module, noGrad, Parameter, type Segment } from "@terse/tensor";
import { expect } from "vitest";
import {
  type Algorithm,
  algorithms,
  compressed,
  dion,
  type GradientCompression,
  gradientCompressions,
  lion,
  lionCub,
  muon,
  Optimizer,
  type OptimizerOptions,
  sgd,
  terngrad,
} from "../index.ts";
import { type Cases, ofAlgorithms, ofCompressions } from "./option-cases.ts";
import { savesOf, stored } from "./stored.ts";

/** A registered optimizer. */
export type Name = keyof typeof algorithms;

class Model extends Module {
  // Squares of 3 × 3.
  readonly first: Parameter = new Parameter(fromTypedArray(wave(918, 1), [9, 102]), { role: "matrix" });
  // Many rows: cholesky-qr.
  readonly second: Parameter = new Parameter(fromTypedArray(wave(390, 3), [130, 3]), { role: "matrix" });
  readonly third: Parameter = new Parameter(fromTypedArray(wave(3000, 2)), { role: "vector" });
}

function wave(n: number, phase: number): Float32Array {
  return Float32Array.from({ length: n }, (_, i) => (i % 11 === 3 ? 0 : Math.sin(i * 12.9898 + phase * 78.233)));
}

/**
 * What differs from the defaults: phases so short that the steps below reach all of them, and what is the same on every
 * machine.
 */
export const settings: Readonly<Record<string, object>> = {
  muon: { nsType: "f32" }, // its own choice depends on the processor
  "sign-muon": { nsType: "f32" },
  "one-bit-adam": { warmup: 2, scale: "momentum-scaled" },
  "lamb-basic-one-bit": { warmup: 2, scale: "momentum-scaled" },
  "one-bit-lamb": { warmup: 2, scale: "momentum-scaled" },
  "zero-one-adam": { freeze: 3, kappa: 1, doubling: 1, localSteps: 2 },
  demo: { k: 1, chunk: 3 },
  codec: { codec: "int8" },
  "lion-steps": { unit: 0.01, steps: 10 },
  dgc: { warmup: 2 },
  powersgd: { startPowerSGDIter: 2 },
};

/** Every codec that can carry gradients, with what it needs; others with nothing. */
const codecs: Record<string, object> = {
  ...Object.fromEntries(Object.keys(codecsOfGradients).map((name) => [name, {}])),
  bf16: {},
  f16: {},
  int8: {},
  l1: { bits: 4 },
  linf: { bits: 4 },
  qsgd: { bits: 4, errorFeedback: false },
  terngrad: { errorFeedback: false },
  "scaled-sign": {},
  sign: { errorFeedback: false },
  ternary: { errorFeedback: false },
  "top-k": { ratio: 0.1 },
  "dct-top-k": { block: 8, k: 1 },
};

/** Options that do more together. */
const optionsTogether: Partial<Record<Name, readonly object[]>> = {
  "distributed-lion": [{ zero: "hold", vote: "average" }],
  "lion-cub": [{ bits: "auto" }, { momentumSync: { segments: "all", every: 2, late: true } }],
  dion: [{ errorFeedback: "own", orientation: "longer" }],
  "one-bit-adam": [{ warmup: "auto", beta2: 0.5 }],
};

/** The groups of algorithms that work on matrices alone: Lion has the vectors. */
export const groups = [{ match: ({ role }: Segment) => role === "vector", algorithm: lion() }];

interface Made {
  readonly create: () => Algorithm;
  readonly more: Partial<OptimizerOptions>;
}

export interface Case extends Made {
  readonly name: string;
  readonly ranks: 2 | 3; // votes of two ranks can tie
  readonly near?: boolean; // to the CPU's result, where a rank adds up its momentum and error in another order
  readonly without?: Case; // the option, which must change something: else the steps do not reach it
  readonly apart?: boolean; // the ranks' parameters differ where they go on from a save
}

/** On the CPU they take one pass for momentum, error and signs, unless layers are scaled. */
const packed: ReadonlySet<string> = new Set(["one-bit-adam", "lamb-basic-one-bit", "one-bit-lamb"]);

interface Schema {
  readonly type: string;
  readonly wrapped?: Schema; // of optional
  readonly default?: unknown;
  readonly options?: readonly unknown[]; // of union and picklist
}

/** The words that an option can be. */
function wordsOf({ type, options = [] }: Schema): readonly unknown[] {
  if (type === "union") return (options as Schema[]).flatMap(wordsOf);
  return type === "picklist" ? options : [];
}

type Make = (options: object) => Made;

/** A case with `settings`, then one for another value of each option, and for each of its words. */
function casesOf(name: string, entry: { readonly options: { readonly entries: object } }, others: Cases, make: Make) {
  const schemas = entry.options.entries as Record<string, Schema>;
  const settled: Record<string, unknown> = { ...settings[name] };
  const withOptions = (given: object, ranks: 2 | 3): Case => {
    const options = { ...settled, ...given };
    const near = packed.has(name) && options["scale"] !== "momentum-scaled";
    return { name: `${name} ${JSON.stringify(given)}`, ranks, near, ...make(options) };
  };
  const each = Object.entries(others).flatMap(([option, [to, beside = {}]]) => {
    const { wrapped, default: standard } = schemas[option]!;
    const words = wrapped ? wordsOf(wrapped) : []; // what must be given may need others beside it
    // Auto: one of the others.
    const more = words.filter((word) => ![to, settled[option] ?? standard, "auto"].includes(word));
    const ranks = option === "vote" ? 3 : 2; // of two votes the average is the majority
    const withValue = (value: unknown) => withOptions({ ...beside, [option]: value }, ranks);
    return [{ ...withValue(to), without: withOptions(beside, ranks) }, ...more.map(withValue)];
  });
  return [withOptions({}, 3), ...each];
}

function madeOf(name: Name, options: object): Made {
  const create = () => (algorithms[name] as (options: object) => Algorithm)(options);
  return { create, more: create().takes === "matrices" ? { groups } : {} };
}

type Compression = keyof typeof gradientCompressions;

function madeOfCompression(name: Compression, options: object): Made {
  const create = gradientCompressions[name] as (options: object) => GradientCompression;
  return { create: () => compressed(sgd(), create(options)), more: {} };
}

export const cases: Case[] = [
  ...(Object.keys(algorithms) as Name[]).flatMap((name) =>
    casesOf(name, algorithms[name], ofAlgorithms[name]!, (options) => madeOf(name, options)),
  ),
  ...(Object.keys(gradientCompressions) as Compression[]).flatMap((name) =>
    casesOf(name, gradientCompressions[name], ofCompressions[name]!, (options) => madeOfCompression(name, options)),
  ),
];
for (const [name, all] of Object.entries(optionsTogether) as [Name, object[]][])
  for (const options of all)
    cases.push({
      name: `${name} ${JSON.stringify(options)}`,
      ranks: 3,
      ...madeOf(name, { ...settings[name], ...options }),
    });
cases.push({
  name: "zero-one-adam, from a save between local steps",
  ranks: 3,
  apart: true,
  ...madeOf("zero-one-adam", { freeze: 1, kappa: 1, doubling: 1, localSteps: 2 }),
});
for (const type of ["bf16", "int8"] as const)
  cases.push({ name: `lion, means of ${type}`, ranks: 3, create: lion, more: { schemes: { means: dense(type) } } });
for (const orientation of ["rows", "longer"] as const)
  cases.push({
    name: `dion over 3 weight-parallel ranks, orientation ${orientation}`,
    ranks: 3,
    create: () => dion({ orientation }),
    more: { groups, parallel: { data: 1, weight: 3 } },
  });
cases.push({
  name: "lion-cub, dense votes inside a host",
  ranks: 3,
  create: lionCub,
  more: { schemes: { votes: hierarchical({ ranksPerHost: 3, inside: "dense" }) } },
});
for (const [codec, options] of Object.entries(codecs))
  cases.push({ name: `codec ${codec}`, ranks: 3, ...madeOfCompression("codec", { codec, ...options }) });
cases.push({
  name: "muon with terngrad",
  ranks: 3,
  create: () => compressed(muon({ nsType: "f32" }), terngrad()),
  more: { groups: [{ ...groups[0]!, algorithm: compressed(lion(), terngrad()) }] },
});

/**
 * What each rank ends with after some steps, in the middle of which it goes on from a save: its parameters; and the
 * bits of these and of its state, with what it has sent.
 */
export async function train(algorithm: () => Algorithm, more: Partial<OptimizerOptions>, device = "cpu", ranks = 3) {
  const groups = loopback(ranks);
  const given = { clip: 10, compareEvery: 1, bucket: 1024, ...more };
  try {
    return await Promise.all(
      groups.map(async (group) => {
        const arena = new Arena(new Model().to({ device }));
        let optimizer = new Optimizer(arena, group, { algorithm: algorithm(), ...given });
        const sent: number[] = [];
        let apart = false;
        for (let step = 0; step < 6 || optimizer.parametersDiffer; step++) {
          if (step === 4) {
            apart = optimizer.parametersDiffer;
            const save = await stored(optimizer);
            await optimizer[Symbol.asyncDispose]();
            optimizer = new Optimizer(arena, group, { algorithm: algorithm(), ...given });
            await optimizer.restore(step, savesOf(group.rank, group.size, save));
          }
          using g = fromTypedArray(wave(arena.gradients.length, group.rank + 3 * step));
          noGrad(() => arena.gradients.copy_(g));
          sent.push((await optimizer.step({ lr: 0.01 })).bytes);
        }
        expect(arena.parameters.device).toBe(device);
        const θ = [...((await arena.parameters.toTypedArray()) as Float32Array)];
        const { tensors, scalars } = await stored(optimizer);
        await optimizer[Symbol.asyncDispose]();
        const state = [...tensors].map(([name, values]) => [name, digest(values)]);
        return { θ, apart, bits: { θ: digest(Float32Array.from(θ)), state, scalars, sent } };
      }),
    );
  } finally {
    for (const group of groups) await group.close();
  }
}

const digest = (values: NodeJS.ArrayBufferView) => createHash("sha1").update(values).digest("hex");
