/**
 * What every algorithm of this folder must do, with the other ranks in the same process. A new one's test is ten lines:
 * its options, and its update written plainly in float64 from the paper.
 */
import { copy, type Group } from "@terse/collectives";
import { StepRefusedError } from "@terse/exchange";
import { Arena, fromTypedArray, Module, noGrad, Parameter } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { type Algorithm, Optimizer, type OptimizerOptions } from "../index.ts";
import { onRanks } from "./on-ranks.ts";
import { savesOf, stored } from "./stored.ts";

/** One step on plain numbers: θ and each rank's state change in place; g[rank] are the ranks' own gradients. */
export type Oracle = (θ: number[], g: readonly number[][], context: { step: number; lr: number }) => void;

interface Contract {
  /** Powers of two for β and η, so that every sum below is exact in f32 and signs can be compared by equality. */
  create: () => Algorithm;
  oracle: (n: number, ranks: number) => Oracle;
  tolerance?: number;
}

const shapes = { first: [3, 7], second: [64], third: [2, 2, 17] } as const;
/** Elements of each parameter. */
export const layerLengths = Object.values(shapes).map((shape) => shape.reduce((a, b) => a * b, 1));
const n = 21 + 64 + 68;

class Parameters extends Module {
  readonly first: Parameter = new Parameter(start(0, shapes.first), { role: "matrix" });
  readonly second: Parameter = new Parameter(start(21, shapes.second), { role: "vector" });
  readonly third: Parameter = new Parameter(start(85, shapes.third), { role: "matrix" });
}

function start(offset: number, shape: readonly number[]) {
  const length = shape.reduce((a, b) => a * b, 1);
  return fromTypedArray(
    Float32Array.from({ length }, (_, i) => initial(offset + i)),
    shape,
  );
}

const initial = (i: number) => ((i * 29) % 17) / 16 - 0.5;

/** Small multiples of 60, which 2 to 5 ranks can share exactly; some are 0, and some elements are always 0. */
function gradient(rank: number, step: number, i: number): number {
  if (i % 13 === 5) return 0;
  return 60 * (((i * 7 + rank * 11 + step * 5 + ((i * rank) % 3)) % 9) - 4);
}

export function optimizerContract(name: string, { create, oracle, tolerance = 1e-6 }: Contract): void {
  /** Runs `steps` steps on every rank and returns each rank's parameters. */
  async function run(ranks: number, steps: number, options: Partial<OptimizerOptions> = {}, lr = 2 ** -6) {
    return onRanks(ranks, async (group) => {
      const { arena, optimizer } = build(group, options);
      for (let step = 0; step < steps; step++) {
        await setGradients(arena, group.rank, step);
        await optimizer.step({ lr });
      }
      return values(arena);
    });
  }

  function build(group: Group, options: Partial<OptimizerOptions> = {}) {
    const arena = new Arena(new Parameters());
    return { arena, optimizer: new Optimizer(arena, group, { algorithm: create(), ...options }) };
  }

  describe(`the contract of ${name}`, () => {
    it.each([1, 2, 3, 4, 5])("follows the paper's update written in float64, on %i ranks", async (ranks) => {
      const steps = 6;
      const lr = 2 ** -6;
      const θ = Array.from({ length: n }, (_, i) => initial(i));
      const expected = oracle(n, ranks);
      for (let step = 0; step < steps; step++) {
        const g = Array.from({ length: ranks }, (_, r) => Array.from({ length: n }, (_, i) => gradient(r, step, i)));
        expected(θ, g, { step, lr });
      }
      for (const got of await run(ranks, steps)) {
        const worst = Math.max(...got.map((x, i) => Math.abs(x - θ[i]!)));
        expect(worst).toBeLessThanOrEqual(tolerance);
      }
    });

    it.each([2, 3, 4])("leaves the same bits on all of %i ranks", async (ranks) => {
      const [first, ...others] = await run(ranks, 12, {}, 0.01);
      for (const other of others) expect(other).toEqual(first);
    });

    it("gives the same result when the parameters go in groups, or says that it cannot", async () => {
      const groups = [{ match: ({ name }: { name: string }) => name === "second", algorithm: create() }];
      if (create().splits === "nowhere") {
        await expect(run(3, 5, { groups })).rejects.toThrow("cannot share it with parameter groups");
        return;
      }
      const whole = await run(3, 5);
      const grouped = await run(3, 5, { groups });
      expect(grouped).toEqual(whole);
    });

    it.each([1, 2, 5])("sends the bytes of its closed form on %i ranks", async (ranks) => {
      const sent = await onRanks(ranks, async (group) => {
        const { arena, optimizer } = build(group, { compareEvery: 0 });
        await setGradients(arena, group.rank, 0);
        const before = group.sent().bytes;
        await optimizer.step({ lr: 0.1 });
        return { got: group.sent().bytes - before, closed: optimizer.bytesSent() };
      });
      for (const { got, closed } of sent) expect(got).toBe(closed);
    });

    it.each(["loss", "gradient"] as const)(
      "changes nothing on any rank when one rank's %s is not finite",
      async (what) => {
        const outcomes = await onRanks(3, async (group) => {
          const { arena, optimizer } = build(group);
          const before = await values(arena);
          await setGradients(arena, group.rank, 0, what === "gradient" && group.rank === 1 ? Number.NaN : undefined);
          const loss = what === "loss" && group.rank === 1 ? Number.NaN : 1;
          const error = await optimizer.step({ lr: 0.1, loss }).catch((error: unknown) => error);
          return { error, unchanged: JSON.stringify(await values(arena)) === JSON.stringify(before) };
        });
        for (const { error, unchanged } of outcomes) {
          expect(error).toBeInstanceOf(StepRefusedError);
          expect((error as Error).message).toMatch(what === "loss" ? /rank 1 .*loss/ : /gradient is not finite/);
          expect(unchanged).toBe(true);
        }
      },
    );

    it("leaves the pads between parameters at zero, in its state too: they are not saved", async () => {
      await onRanks(2, async (group) => {
        const { arena, optimizer } = build(group);
        for (let step = 0; step < 3; step++) {
          await setGradients(arena, group.rank, step);
          await optimizer.step({ lr: 0.01 });
        }
        const { tensors } = await optimizer.state();
        for (const { name, length } of arena.segments)
          for (const [key, { length: n, pointer, dtype, device }] of tensors) {
            if (!key.endsWith(`.${name}`) || n !== length || length % 64 === 0) continue;
            if (create().splits === "at segments") continue; // its state has no pads
            const pad = new Float32Array(64 - (length % 64)); // behind the parameter's values, in the same memory
            copy(pad, { pointer: pointer + BigInt(4 * length), length: pad.length, dtype, device });
            expect(
              pad.every((value) => value === 0),
              key,
            ).toBe(true);
          }
      });
    });

    it("goes on from a saved state as if it had never stopped", async () => {
      const straight = await run(2, 7, {}, 0.01);
      const resumed = await onRanks(2, async (group) => {
        const first = build(group);
        for (let step = 0; step < 4; step++) {
          await setGradients(first.arena, group.rank, step);
          await first.optimizer.step({ lr: 0.01 });
        }
        const second = build(group);
        noGrad(() => second.arena.parameters.copy_(first.arena.parameters));
        const save = await stored(first.optimizer);
        await second.optimizer.restore(first.optimizer.steps, savesOf(group.rank, group.size, save));
        for (let step = 4; step < 7; step++) {
          await setGradients(second.arena, group.rank, step);
          await second.optimizer.step({ lr: 0.01 });
        }
        return values(second.arena);
      });
      expect(resumed).toEqual(straight);
    });
  });
}

async function setGradients(arena: Arena, rank: number, step: number, poison?: number): Promise<void> {
  let at = 0;
  for (const { offset, length } of arena.segments) {
    const values = Float32Array.from({ length }, (_, i) => gradient(rank, step, at + i));
    if (poison !== undefined && at === 0) values[3] = poison;
    noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(values)));
    at += length;
  }
}

async function values(arena: Arena): Promise<number[]> {
  const flat = [...((await arena.parameters.toTypedArray()) as Float32Array)];
  return arena.segments.flatMap(({ offset, length }) => flat.slice(offset, offset + length));
}

/** The same for all oracles: the mean of the ranks' gradients. */
export function mean(g: readonly number[][]): number[] {
  return g[0]!.map((_, i) => g.reduce((sum, of) => sum + of[i]!, 0) / g.length);
}

/** The layers' parts of a vector of all parameters: [begin, end). */
export function layerRanges(): [begin: number, end: number][] {
  return layerLengths.map((length, k) => {
    const begin = layerLengths.slice(0, k).reduce((sum, each) => sum + each, 0);
    return [begin, begin + length];
  });
}

const normOf = (x: readonly number[]) => Math.sqrt(x.reduce((sum, value) => sum + value * value, 0));

/** One LAMB update in float64 with λ 1/4 and ε 2⁻¹⁰, in place; returns c of each layer. */
export function lambUpdate(
  θ: number[],
  m: readonly number[],
  v: readonly number[],
  { lr, maxRatio = 0.3 }: { lr: number; maxRatio?: number },
): number[] {
  return layerRanges().map(([begin, end]) => {
    const weights = θ.slice(begin, end);
    const u = weights.map((x, i) => m[begin + i]! / (Math.sqrt(v[begin + i]!) + 2 ** -10) + 0.25 * x);
    const c = Math.min(Math.max(normOf(weights) / normOf(u), 0.01), maxRatio);
    for (const [i, value] of u.entries()) θ[begin + i] = weights[i]! - lr * c * value;
    return c;
  });
}

/** LAMB in float64 with β₁ 1/2, β₂ 3/4, λ 1/4 and ε 2⁻¹⁰. */
export function lambOracle(n: number, { maxRatio = 0.3 }: { maxRatio?: number } = {}): Oracle {
  const m = new Array<number>(n).fill(0);
  const v = new Array<number>(n).fill(0);
  return (θ, g, { lr }) => {
    for (const [i, value] of mean(g).entries()) {
      m[i] = 0.5 * m[i]! + 0.5 * value;
      v[i] = 0.75 * v[i]! + 0.25 * value ** 2;
    }
    lambUpdate(θ, m, v, { lr, maxRatio });
  };
}

/**
 * A Lion whose ranks vote, plainly in float64, with β₁ 1/2, β₂ 3/4, λ 1/4 and zeros alternating: Algorithm 1 of both papers.
 * `Δ` makes the update of the sum of the ranks' signs. With `zero: "hold"` the sign of 0 is 0.
 */
export function votingOracle(
  Δ: (sum: number, ranks: number, alternate: number) => number,
  { zero = "alternate" }: { zero?: "alternate" | "hold" } = {},
) {
  return (n: number, ranks: number): Oracle => {
    const m = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
    return (θ, g, { step, lr }) => {
      const alternate = step % 2 === 0 ? 1 : -1;
      for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let r = 0; r < ranks; r++) {
          sum += Math.sign(0.5 * m[r]![i]! + 0.5 * g[r]![i]!) || (zero === "hold" ? 0 : alternate);
          m[r]![i] = 0.75 * m[r]![i]! + 0.25 * g[r]![i]!;
        }
        θ[i] = θ[i]! - lr * (Δ(sum, ranks, alternate) + 0.25 * θ[i]!);
      }
    };
  };
}
