/** Clipping by the norm of the gradient, for every optimizer. */
import type { Group } from "@terse/collectives";
import { Arena, fromTypedArray, Module, noGrad, Parameter, zeros } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { type Algorithm, algorithms, clipBys, Optimizer, type OptimizerOptions } from "../index.ts";
import { onRanks } from "../testing/on-ranks.ts";

const names = Object.keys(algorithms) as (keyof typeof algorithms)[];
const steps = 6;

/** With phases that all are reached within these steps. */
function create(name: keyof typeof algorithms): Algorithm {
  const create = algorithms[name];
  const { options } = create;
  const phases = {
    ...("warmup" in options.entries && { warmup: 2 }),
    ...("freeze" in options.entries && { freeze: 2, kappa: 1, doubling: 1, localSteps: 2 }), // step 4 is a local one
    ...(name === "muon" && { eps: 4 }), // more than any norm, which otherwise makes gradients of all lengths alike
  };
  return (create as (options: object) => Algorithm)(phases);
}

/** 256 elements. */
class Matrices extends Module {
  readonly first: Parameter = new Parameter(zeros([16, 8]), { role: "matrix" });
  readonly second: Parameter = new Parameter(zeros([8, 16]), { role: "matrix" });
}

// A gradient of ±s has the norm 16 s, and the mean of 4 ranks is ±2: norms are powers of two, and dividing by them is
// exact.
const scales = [1, 1, 2, 4];
const sizeOfMean = 2;

/** `scaleOf`: of this rank's gradients in a step. */
async function train(
  group: Group,
  algorithm: Algorithm,
  options: Omit<OptimizerOptions, "algorithm">,
  scaleOf: (step: number) => number,
): Promise<number[]> {
  const arena = new Arena(new Matrices());
  noGrad(() => {
    const values = Float32Array.from({ length: 256 }, (_, i) => Math.sin(1 + i) / 2);
    arena.parameters.copy_(fromTypedArray(values));
  });
  await using optimizer = new Optimizer(arena, group, { algorithm, compareEvery: 1, ...options });
  for (let step = 0; step < steps; step++) {
    const g = Float32Array.from({ length: 256 }, (_, i) => scaleOf(step) * (Math.sin(i * (step + 2)) > 0 ? 1 : -1));
    noGrad(() => arena.gradients.copy_(fromTypedArray(g)));
    await optimizer.step({ lr: 2 ** -8 });
  }
  return [...((await arena.parameters.toTypedArray()) as Float32Array)];
}

describe.each(names)("%s", (name) => {
  it("with the global norm takes the gradient divided by its norm: of the mean where it is averaged, else of the rank's own", async () => {
    const averages = new Map<number, boolean>(); // by step
    const watched = (algorithm: Algorithm): Algorithm => ({
      ...algorithm,
      messages(vector, step, state) {
        const messages = algorithm.messages(vector, step, state);
        averages.set(
          step,
          messages.some(({ kind }) => kind.startsWith("meanGradient")),
        );
        return messages;
      },
    });
    const clipped = await onRanks(4, (group) =>
      train(group, watched(create(name)), { clip: 0.5 }, () => scales[group.rank]!),
    );
    const divided = await onRanks(4, (group) =>
      train(group, create(name), {}, (step) => {
        const own = scales[group.rank]!;
        const norm = 16 * (averages.get(step) ? sizeOfMean : own);
        return (own * 0.5) / norm;
      }),
    );
    expect(clipped).toEqual(divided);
  });

  it.each(clipBys)("leaves the same bits on every rank by the norm of: %s", async (clipBy) => {
    const options = { clip: 0.5, clipBy, bucket: 128, overlap: "auto" } as const;
    const [first, ...others] = await onRanks(3, (group) =>
      train(group, create(name), options, (step) => (group.rank + 1) * (step + 1)),
    );
    for (const other of others) expect(other).toEqual(first);
  });

  it("does not change a gradient that is shorter than the limit", async () => {
    const run = (clip: number) =>
      onRanks(2, (group) => train(group, create(name), { clip }, () => scales[group.rank]!));
    expect(await run(65)).toEqual(await run(0));
  });
});
