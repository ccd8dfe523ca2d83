/** What a method computes by itself in a step, measured on this machine with one rank: its arithmetic, and its codecs. */
import { loopback } from "@terse/collectives";
import { Arena, Linear, noGrad, Sequential, scope } from "@terse/tensor";
import { makeOptimizer } from "../build.ts";
import { StepMeter } from "../measures/step-meter.ts";
import type { Recipe } from "../recipe.ts";

const [layers, width, warmUp, steps] = [2, 512, 2, 3];

const known = new Map<string, Promise<number>>();

/** Seconds an element of the parameters, the median of a few steps; measured once for each method. */
export function localWork(recipe: Recipe): Promise<number> {
  const { lr: _, ...method } = recipe.optimizer;
  const key = JSON.stringify([method, recipe.exchange]);
  const work = known.get(key) ?? measure(recipe);
  known.set(key, work);
  return work;
}

async function measure(recipe: Recipe): Promise<number> {
  const [group] = loopback(1);
  await using alone = group!;
  return await scope(async () => {
    const arena = new Arena(
      new Sequential(...Array.from({ length: layers }, () => new Linear(width, width, { bias: false }))),
    );
    await using optimizer = makeOptimizer(
      { ...recipe, device: "cpu", compareEvery: 0, overlap: "off" },
      arena,
      alone,
      {},
    );
    const meter = new StepMeter();
    optimizer.watch = meter;
    const seconds: number[] = [];
    for (let step = 0; step < warmUp + steps; step++) {
      noGrad(() => arena.gradients.normal_());
      meter.begin(step);
      await optimizer.step({ lr: 1e-4 });
      meter.end();
      const { encode, decode, update } = meter.take(1).parts;
      if (step >= warmUp) seconds.push(encode + decode + update);
    }
    return seconds.sort((a, b) => a - b)[steps >> 1]! / arena.parameters.length;
  });
}
