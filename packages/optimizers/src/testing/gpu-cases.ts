/** For tests on GPUs: every optimizer and every compression of gradients, and a short training with each. */
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
import { savesOf, stored } from "./stored.ts";

/** A registered optimizer. */
export type Name = keyof typeof algorithms;

class Model extends Module {
  readonly first: Parameter = new Parameter(fromTypedArray(wave(918, 1), [9, 102]), { role: "matrix" });
  readonly second: Parameter = new Parameter(fromTypedArray(wave(3000, 2)), { role: "vector" });
}

function wave(n: number, phase: number): Float32Array {
  return Float32Array.from({ length: n }, (_, i) => (i % 11 === 3 ? 0 : Math.sin(i * 12.9898 + phase * 78.233)));
}

/** The settings of each optimizer; its defaults where none are named here. Phases are so short that the steps below reach all of them. */
export const settings: Partial<Record<Name, readonly object[]>> = {
  sgd: [{ momentum: 0.9, nesterov: true }, {}],
  "lion-cub": [
    { weightDecay: 0.1 },
    { bits: 4 },
    { sumBits: 8 },
    { maskEvery: 2 },
    { zero: "hold" },
    { bits: 4, sum: "direct" },
    { bits: 4, quantizer: "linf-logarithmic" },
    { momentumSync: { segments: "all", every: 2 } },
    { momentumSync: { segments: "all", every: 2, late: true } },
  ],
  "distributed-lion": [
    { weightDecay: 0.1 },
    { vote: "average" },
    { maskEvery: 2 },
    { zero: "hold" },
    { zero: "hold", vote: "average" },
    { momentumSync: { segments: "all", every: 2 } },
  ],
  muon: [{ nsType: "f32" }], // its own choice depends on the processor
  // With another scale a rank adds up its momentum and error in another order on the CPU: cuda.test.ts has a test of its own for that.
  "one-bit-adam": [{ warmup: 2, scale: "momentum-scaled" }],
  "lamb-basic-one-bit": [{ warmup: 2, scale: "momentum-scaled" }],
  "zero-one-adam": [
    { freeze: 3, kappa: 1 },
    { freeze: 3, early: "gradient" },
  ],
  dion: [{}, { errorFeedback: "own", orientation: "longer" }, { approximate: "svd" }],
  "one-bit-lamb": [{ warmup: 2, scale: "momentum-scaled", decayCorrection: true }],
};

const compressionOptions: Record<string, object> = { codec: { codec: "int8" } };

/** For those that work on matrices alone. */
export const groups = [{ match: ({ role }: Segment) => role === "vector", algorithm: lion() }];

export type Case = {
  readonly name: string;
  readonly create: () => Algorithm;
  readonly more: Partial<OptimizerOptions>;
};

export const cases: Case[] = (Object.keys(algorithms) as Name[]).flatMap((name) =>
  (settings[name] ?? [{}]).map((options) => {
    const create = () => (algorithms[name].create as (options: object) => Algorithm)(options);
    return {
      name: `${name} ${JSON.stringify(options)}`,
      create,
      more: create().takes === "matrices" ? { groups } : {},
    };
  }),
);
for (const type of ["bf16", "int8"] as const)
  cases.push({ name: `lion, means of ${type}`, create: lion, more: { schemes: { means: dense(type) } } });
for (const orientation of ["rows", "longer"] as const)
  cases.push({
    name: `dion over 3 weight-parallel ranks, orientation ${orientation}`,
    create: () => dion({ orientation }),
    more: { groups, parallel: { data: 1, weight: 3 } },
  });
cases.push({
  name: "lion-cub, dense votes inside a host",
  create: lionCub,
  more: { schemes: { votes: hierarchical({ ranksPerHost: 3, inside: "dense" }) } },
});
for (const [name, { create }] of Object.entries(gradientCompressions))
  cases.push({
    name: `sgd with ${name}`,
    create: () =>
      compressed(sgd(), (create as (options: object) => GradientCompression)(compressionOptions[name] ?? {})),
    more: {},
  });

cases.push({
  name: "muon with terngrad",
  create: () => compressed(muon({ nsType: "f32" }), terngrad()),
  more: { groups: [{ ...groups[0]!, algorithm: compressed(lion(), terngrad()) }] },
});

/** Parameters and saved state of three ranks after some steps, in the middle of which they go on from a save. */
export async function train(algorithm: () => Algorithm, more: Partial<OptimizerOptions>, device = "cpu") {
  const groups = loopback(3);
  const given = { clip: 10, compareEvery: 1, bucket: 1024, ...more };
  try {
    return await Promise.all(
      groups.map(async (group) => {
        const arena = new Arena(new Model().to({ device }));
        let optimizer = new Optimizer(arena, group, { algorithm: algorithm(), ...given });
        for (let step = 0; step < 6; step++) {
          if (step === 4) {
            const save = await stored(optimizer);
            await optimizer[Symbol.asyncDispose]();
            optimizer = new Optimizer(arena, group, { algorithm: algorithm(), ...given });
            await optimizer.restore(step, savesOf(group.rank, group.size, save));
          }
          using g = fromTypedArray(wave(arena.gradients.length, group.rank + 3 * step));
          noGrad(() => arena.gradients.copy_(g));
          await optimizer.step({ lr: 0.01 });
        }
        expect(arena.parameters.device).toBe(device);
        const θ = [...((await arena.parameters.toTypedArray()) as Float32Array)];
        const { tensors } = await stored(optimizer);
        await optimizer[Symbol.asyncDispose]();
        return { θ, state: [...tensors].map(([key, values]) => [key, ...values]) };
      }),
    );
  } finally {
    for (const group of groups) await group.close();
  }
}
