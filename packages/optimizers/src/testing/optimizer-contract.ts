/**
 * What every algorithm of this folder must do, with the other ranks in the same process. A new one's test is ten lines:
 * its options, and its update written plainly in float64 from the paper.
 */
import { isDeepStrictEqual } from "node:util";
import { copy, type Group } from "@terse/collectives";
import { headerBytes, StepRefusedError } from "@terse/exchange";
import { Arena, fromTypedArray, Module, memory, noGrad, Parameter, scope, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { type Algorithm, Optimizer, type OptimizerOptions, type StoredState } from "../index.ts";
import { onRanks } from "./on-ranks.ts";
import { savesOf, stored } from "./stored.ts";

/** One step on plain numbers: θ and each rank's state change in place; g[rank] are the ranks' own gradients. */
export type Oracle = (θ: number[], g: readonly number[][], context: { step: number; lr: number }) => void;

interface Contract {
  /** Powers of two for β and η, so that every sum below is exact in f32 and signs can be compared by equality. */
  create: () => Algorithm;
  /** The update in float64; none for what is drawn at random, whose mean and bounds are tested beside. */
  oracle?: ((n: number, ranks: number) => Oracle) | undefined;
  tolerance?: number;
  /**
   * The shapes of the three parameters: by default anyShapes, or matrixShapes for an algorithm that takes nothing but
   * matrices.
   */
  shapes?: Shapes;
}

type Shapes = Readonly<Record<"first" | "second" | "third", readonly number[]>>;

const anyShapes = { first: [3, 7], second: [64], third: [2, 2, 17] } as const;
/** Matrices of as many elements, for algorithms that take nothing else. */
export const matrixShapes = { first: [3, 7], second: [8, 8], third: [17, 4] } as const;
const lengthOf = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);
/** Elements of each parameter. */
export const layerLengths = Object.values(anyShapes).map(lengthOf);

class Parameters extends Module {
  readonly first: Parameter;
  readonly second: Parameter;
  readonly third: Parameter;

  constructor(shapes: Shapes) {
    super();
    let offset = 0;
    const [first, second, third] = [shapes.first, shapes.second, shapes.third].map((shape) => {
      const values = Float32Array.from({ length: lengthOf(shape) }, (_, i) => initial(offset + i));
      offset += values.length;
      return new Parameter(fromTypedArray(values, shape), { role: shape.length === 1 ? "vector" : "matrix" });
    });
    this.first = first!;
    this.second = second!;
    this.third = third!;
  }
}

const initial = (i: number) => ((i * 29) % 17) / 16 - 0.5;

/** Small multiples of 60, which 2 to 5 ranks can share exactly; some are 0, and some elements are always 0. */
function gradient(rank: number, step: number, i: number): number {
  if (i % 13 === 5) return 0;
  return 60 * (((i * 7 + rank * 11 + step * 5 + ((i * rank) % 3)) % 9) - 4);
}

const worlds = [1, 2, 3, 4, 5];

/** Troubles that gradients may have; the keys end the sentence of a test's name. */
const hardships: Readonly<Record<string, Which>> = {
  "": {},
  ", one of which has no gradient": { without: (rank) => rank === 0 },
  ", a parameter without gradient": { without: (_, name) => name === "second" },
  ", a frozen parameter": { frozen: "third" },
};

export function optimizerContract(name: string, { create, oracle, tolerance = 1e-6, shapes }: Contract): void {
  const given = shapes ?? (create().takes === "matrices" ? matrixShapes : anyShapes);
  const n = Object.values(given).reduce((sum, shape) => sum + lengthOf(shape), 0);

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

  function build(group: Group, options: Partial<OptimizerOptions> = {}, { frozen }: Which = {}) {
    const algorithm = create();
    const parameters = new Parameters(given);
    if (frozen) parameters[frozen].requiresGrad = false;
    const arena = new Arena(parameters);
    return { arena, parameters, optimizer: new Optimizer(arena, group, { algorithm, ...options }) };
  }

  describe(`the contract of ${name}`, () => {
    it("is that of the algorithm with which its title begins", () =>
      expect(name).toMatch(new RegExp(`^${create().name.split(" with ")[0]}(?![\\w-])`)));

    const follows = it.each(oracle ? [1, 2, 3, 4, 5] : []);
    follows("follows the paper's update written in float64, on %i ranks", async (ranks) => {
      const steps = 6;
      const lr = 2 ** -6;
      const θ = Array.from({ length: n }, (_, i) => initial(i));
      const expected = oracle!(n, ranks);
      for (let step = 0; step < steps; step++) {
        const g = Array.from({ length: ranks }, (_, r) => Array.from({ length: n }, (_, i) => gradient(r, step, i)));
        expected(θ, g, { step, lr });
      }
      for (const got of await run(ranks, steps)) {
        const worst = Math.max(...got.map((x, i) => Math.abs(x - θ[i]!)));
        expect(worst).toBeLessThanOrEqual(tolerance);
      }
    });

    it.each(worlds.flatMap((ranks) => Object.entries(hardships).map(([what, which]) => [ranks, what, which] as const)))(
      "leaves the same finite bits on all of %i ranks after every step%s",
      async (ranks, _, which) => {
        const all = await onRanks(ranks, async (group) => {
          const { arena, optimizer, parameters } = build(group, {}, which);
          const before = which.frozen && (await whole(parameters[which.frozen]));
          const visited: { parametersDiffer: boolean; θ: number[] }[] = [];
          for (let step = 0; step < 8; step++) {
            await setGradients(arena, group.rank, step, which);
            await optimizer.step({ lr: 0.01 });
            visited.push({ parametersDiffer: optimizer.parametersDiffer, θ: await values(arena) });
          }
          if (which.frozen) expect(await whole(parameters[which.frozen])).toEqual(before);
          return visited;
        });
        for (const [step, { parametersDiffer, θ }] of all[0]!.entries()) {
          expect(θ.every(Number.isFinite)).toBe(true);
          for (const visited of all) if (!parametersDiffer) expect(visited[step]!.θ, `step ${step}`).toEqual(θ);
        }
        expect(all[0]!.at(-1)!.parametersDiffer).toBe(false); // local steps have ended
      },
    );

    it("changes its parameters behind the line in which the ranks agree, and nowhere before", async () => {
      await onRanks(2, async (group) => {
        const plain = create();
        const algorithm: Algorithm = {
          ...plain,
          async step(θ, g, state, exchange, context) {
            const before = await whole(θ);
            const agreed = async () => {
              expect(await whole(θ)).toEqual(before);
              await exchange.agreed();
            };
            await plain.step(θ, g, state, { ...exchange, agreed }, context);
          },
        };
        const arena = new Arena(new Parameters(given));
        const optimizer = new Optimizer(arena, group, { algorithm, bucket: 1 });
        for (let step = 0; step < 6; step++) {
          await setGradients(arena, group.rank, step);
          await optimizer.step({ lr: 0.01 });
        }
      });
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

    it.each([1, 2, 5])("sends the bytes of its closed form in every phase on %i ranks", async (ranks) => {
      const sent = await onRanks(ranks, async (group) => {
        const { arena, optimizer } = build(group, { compareEvery: 0 });
        const steps: { got: number; closed: number }[] = [];
        for (let step = 0; step < 8; step++) {
          await setGradients(arena, group.rank, step);
          const closed = optimizer.bytesSent();
          const { bytes, messages } = await optimizer.step({ lr: 0.1 });
          steps.push({ got: bytes - headerBytes * messages, closed });
        }
        return steps;
      });
      for (const steps of sent) expect(steps.map(({ got }) => got)).toEqual(steps.map(({ closed }) => closed));
    });

    it("frees every tensor that a step makes", async () => {
      await onRanks(1, async (group) => {
        const { arena, optimizer } = build(group);
        for (let step = 0; step < 8; step++) {
          await scope(() => setGradients(arena, group.rank, step));
          const before = memory().tensors;
          await optimizer.step({ lr: 0.01 });
          // Less where garbage of other tests is collected.
          expect(memory().tensors, `step ${step}`).toBeLessThanOrEqual(before);
        }
      });
    });

    /**
     * In a warm-up, in a local step and in a compressed one, where the algorithm has them; on another rank each time.
     */
    it.each([1, 2, 3, 5].flatMap((ranks) => (["loss", "gradient"] as const).map((what) => [ranks, what] as const)))(
      "changes nothing on any of %i ranks when one rank's %s is not finite, and goes on from a save",
      async (ranks, what) => {
        const train = (poisoned: readonly number[]) =>
          onRanks(ranks, async (group) => {
            const training = build(group);
            const { arena, optimizer } = training;
            const refusals: { step: number; error: unknown; unchanged: boolean }[] = [];
            for (const step of poisoned) {
              await advance(training, group.rank, step);
              const { θ: before, state } = await saved(training);
              const isMine = group.rank === (step + 1) % ranks;
              await setGradients(arena, group.rank, step, {
                poison: isMine && what === "gradient" ? Number.NaN : undefined,
              });
              const loss = isMine && what === "loss" ? Number.NaN : 1;
              const error = await optimizer.step({ lr: 0.01, loss }).catch((error: unknown) => error);
              refusals.push({ step, error, unchanged: isDeepStrictEqual((await saved(training)).θ, before) });
              await optimizer.restore(step, savesOf(group.rank, ranks, state)); // momenta may have changed
            }
            await advance(training, group.rank, 6);
            return { refusals, θ: await values(arena) };
          });
        const never = await train([]);
        const outcomes = await train([0, 4, 5]);
        for (const { refusals } of outcomes)
          for (const { step, error, unchanged } of refusals) {
            expect(error).toBeInstanceOf(StepRefusedError);
            expect((error as Error).message).toMatch(
              what === "loss" ? new RegExp(`rank ${(step + 1) % ranks} .*loss`) : /gradient is not finite/,
            );
            expect(unchanged, `step ${step}`).toBe(true);
          }
        expect(outcomes.map(({ θ }) => θ)).toEqual(never.map(({ θ }) => θ));
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

    it("goes on from a save after any step as if it had never stopped, with the parameters of one rank", async () => {
      const steps = 9;
      const whole = await onRanks(2, async (group) => {
        const training = build(group);
        const saves: Save[] = [];
        for (let step = 0; step < steps; step++) {
          await advance(training, group.rank, step + 1);
          saves.push(await saved(training));
        }
        return saves;
      });
      const wanted = whole.map((saves) => saves.at(-1)!.θ);
      for (let at = 1; at < steps; at++) {
        const resumed = await onRanks(2, async (group) => {
          const training = build(group);
          noGrad(() => training.arena.parameters.copy_(fromTypedArray(whole[0]![at - 1]!.θ)));
          await training.optimizer.restore(at, savesOf(group.rank, 2, whole[group.rank]![at - 1]!.state));
          await advance(training, group.rank, steps);
          return (await saved(training)).θ;
        });
        expect(resumed, `after ${at} steps`).toEqual(wanted);
      }
    });

    it.each([
      [3, 2],
      [3, 4],
      [1, 2],
      [1, 3],
      [2, 1],
      [3, 1],
    ])("goes on from %i ranks with %i, and no value that waits to be sent is lost", async (from, to) => {
      const before = await onRanks(from, async (group) => {
        const training = build(group);
        await advance(training, group.rank, 6);
        return saved(training);
      });
      const after = await onRanks(to, async (group) => {
        const training = build(group);
        noGrad(() => training.arena.parameters.copy_(fromTypedArray(before[0]!.θ)));
        await training.optimizer.restore(
          6,
          before.map(({ state }) => state),
        );
        const { state } = await saved(training);
        await advance(training, group.rank, 8);
        return { state, θ: (await saved(training)).θ };
      });

      const [means, shares] = [meansOf(before), sharesOf(before)];
      for (const [name, share] of to === 1 ? shares : []) {
        const error = means.get(name.replace("serverError", "workerError").replace("OwnerError", "Error"));
        if (!error) continue; // a single rank owns it all
        for (const [i, value] of share.entries()) error[i]! += value; // mean(e) + f
        shares.delete(name);
      }
      for (const { θ, state } of after) {
        expect(θ).toEqual(after[0]!.θ);
        expect(state.scalars).toEqual(before[0]!.state.scalars);
        for (const [name, values] of state.tensors)
          if (!name.endsWith("]")) expectClose(name, values as Float32Array, means.get(name)!);
      }
      const now = sharesOf(after);
      for (const [name, share] of now) expect(share, name).toEqual(shares.get(name) ?? share.map(() => 0));
      expect([...now.keys()]).toEqual(expect.arrayContaining([...shares.keys()]));
    });
  });

  async function advance({ arena, optimizer }: ReturnType<typeof build>, rank: number, until: number) {
    while (optimizer.steps < until) {
      await setGradients(arena, rank, optimizer.steps);
      await optimizer.step({ lr: 0.01 });
    }
  }
}

interface Save {
  readonly θ: Float32Array;
  readonly state: StoredState;
}

const saved = async ({ arena, optimizer }: { arena: Arena; optimizer: Optimizer }): Promise<Save> => ({
  θ: await whole(arena.parameters),
  state: await stored(optimizer),
});

const whole = async (x: Tensor) => ((await x.toTypedArray()) as Float32Array).slice();

/** What the ranks own of each parameter, put together. */
function sharesOf(saves: readonly { readonly state: StoredState }[]): Map<string, number[]> {
  const shares = new Map<string, number[]>();
  for (const { state } of saves)
    for (const [name, values] of state.tensors) {
      const [, of, begin] = /^(.*)\[(\d+):\d+\]$/.exec(name) ?? [];
      if (of === undefined) continue;
      const all = shares.get(of) ?? [];
      shares.set(of, all);
      for (const [i, value] of [...(values as Float32Array)].entries()) all[Number(begin) + i] = value;
    }
  return new Map([...shares].sort());
}

/** The means over the ranks of what each has by itself. */
function meansOf(saves: readonly { readonly state: StoredState }[]): Map<string, number[]> {
  const names = [...saves[0]!.state.tensors.keys()].filter((name) => !name.endsWith("]"));
  const mean = (name: string) => {
    const all = saves.map(({ state }) => [...(state.tensors.get(name) as Float32Array)]);
    return all[0]!.map((_, i) => all.reduce((sum, of) => sum + of[i]!, 0) / all.length);
  };
  return new Map(names.map((name) => [name, mean(name)]));
}

/** But for the round-off of a sum. */
function expectClose(name: string, got: ArrayLike<number>, wanted: readonly number[]): void {
  const largest = Math.max(...wanted.map(Math.abs));
  const worst = Math.max(...wanted.map((value, i) => Math.abs(value - got[i]!)));
  expect(worst, name).toBeLessThanOrEqual(1e-6 * largest);
}

/** Which parameters have no gradient, on which ranks; which one is frozen; the value of one element on this rank. */
interface Which {
  readonly without?: (rank: number, name: string) => boolean;
  readonly frozen?: "first" | "second" | "third";
  readonly poison?: number | undefined;
}

async function setGradients(arena: Arena, rank: number, step: number, { without, poison }: Which = {}): Promise<void> {
  let at = 0;
  for (const { name, offset, length } of arena.segments) {
    const isZero = without?.(rank, name) ?? false;
    const values = Float32Array.from({ length }, (_, i) => (isZero ? 0 : gradient(rank, step, at + i)));
    if (poison !== undefined && at === 0) values[3] = poison;
    noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(values)));
    at += length;
  }
}

async function values(arena: Arena): Promise<number[]> {
  const flat = [...((await arena.parameters.toTypedArray()) as Float32Array)];
  return arena.segments.flatMap(({ offset, length }) => flat.slice(offset, offset + length));
}

/** The mean of the ranks' gradients, which all oracles need. */
export function mean(g: readonly number[][]): number[] {
  return g[0]!.map((_, i) => g.reduce((sum, of) => sum + of[i]!, 0) / g.length);
}

/** The layers' parts of a vector of all parameters: [begin, end). */
export function layerRanges(lengths: readonly number[] = layerLengths): [begin: number, end: number][] {
  return lengths.map((length, k) => {
    const begin = lengths.slice(0, k).reduce((sum, each) => sum + each, 0);
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
 * A Lion whose ranks vote, plainly in float64, with β₁ 1/2, β₂ 3/4, λ 1/4 and zeros alternating: Algorithm 1 of both
 * papers. `Δ` makes the update of the sum of the ranks' signs. With `zero: "hold"` the sign of 0 is 0. `masked`:
 * elements that have had no gradient only decay.
 */
export function votingOracle(
  Δ: (sum: number, ranks: number, alternate: number) => number,
  { zero = "alternate", masked = false }: { zero?: "alternate" | "hold"; masked?: boolean } = {},
) {
  return (n: number, ranks: number): Oracle => {
    const seen = new Array<boolean>(n).fill(false); // a gradient, on any rank
    const m = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
    return (θ, g, { step, lr }) => {
      const alternate = step % 2 === 0 ? 1 : -1;
      for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let r = 0; r < ranks; r++) {
          sum += Math.sign(0.5 * m[r]![i]! + 0.5 * g[r]![i]!) || (zero === "hold" ? 0 : alternate);
          m[r]![i] = 0.75 * m[r]![i]! + 0.25 * g[r]![i]!;
          seen[i] ||= m[r]![i] !== 0;
        }
        θ[i] = θ[i]! - lr * ((seen[i] || !masked ? Δ(sum, ranks, alternate) : 0) + 0.25 * θ[i]!);
      }
    };
  };
}
