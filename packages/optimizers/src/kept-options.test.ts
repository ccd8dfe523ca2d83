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
import { type Cases, ofAlgorithms, ofCompressions } from "./testing/option-cases.ts";
import { savesOf, stored } from "./testing/stored.ts";

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

type Resumed = ReturnType<typeof resumed>;

const unchanged = new Map<string, Resumed>();

/** The run without a change after the save, to which changes are compared; one for all options of an optimizer. */
function resumedUnchanged(name: string, create: (options: object) => Algorithm, at: number, options: object): Resumed {
  const key = `${name} ${at} ${JSON.stringify(options)}`;
  const known = unchanged.get(key) ?? resumed(create, at, options, options);
  unchanged.set(key, known);
  return known;
}

interface Entry {
  readonly options: { readonly entries: object };
}

function everyOption(name: string, entry: Entry, cases: Cases, create: (options: object) => Algorithm): void {
  for (const [option, [to, beside = {}]] of Object.entries(cases))
    it.each([2, 6])(`${name}.${option} takes effect after %i steps, or is refused`, async (at) => {
      const before = withDefaults(entry, { ...phases[name], ...beside });
      const after = withDefaults(entry, { ...phases[name], ...beside, [option]: to });
      const refused = refusedOptions(entry, { before, after, step: at });
      if (refused.size > 0) return expect([...refused.keys()]).toEqual([option]);
      expect(await resumed(create, at, before, after)).not.toEqual(await resumedUnchanged(name, create, at, before));
    });
}

/** As recipes have them. */
const withDefaults = ({ options }: Entry, given: object): object => parseOptions(options as never, given, "");

describe("an option of an optimizer", () => {
  for (const [name, cases] of Object.entries(ofAlgorithms)) {
    const entry = algorithms[name as keyof typeof algorithms];
    everyOption(name, entry, cases, entry as never);
  }
});

describe("an option of a compression of gradients", () => {
  for (const [name, cases] of Object.entries(ofCompressions)) {
    const entry = gradientCompressions[name as keyof typeof gradientCompressions];
    const create = entry as (options: object) => Parameters<typeof compressed>[1];
    everyOption(name, entry, cases, (options) => compressed(sgd({ momentum: 0.9 }), create(options)));
  }
});
