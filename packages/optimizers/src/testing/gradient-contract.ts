/**
 * What every compression of gradients must do: under SGD all that an algorithm must (optimizer-contract.ts), and beside
 * others what a pair must. A new one's test is ten lines: its options, and its mean written plainly in float64 from the
 * paper.
 */
import type { Group } from "@terse/collectives";
import { openExchange } from "@terse/exchange";
import { Arena, fromTypedArray, Module, noGrad, Parameter, type Tensor, zeros } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import {
  adamw,
  compressed,
  type GradientCompression,
  lamb,
  lion,
  muon,
  Optimizer,
  type OptimizerOptions,
  sgd,
} from "../index.ts";
import { spansOf } from "../parameter-groups.ts";
import { Chain, input } from "./chain.ts";
import { onRanks } from "./on-ranks.ts";
import { optimizerContract } from "./optimizer-contract.ts";
import { savesOf, stored } from "./stored.ts";

/** What a compression makes of the ranks' gradients of all parameters at one step; each rank's state is kept inside. */
export type MeanOracle = (g: readonly number[][], step: number) => number[];

interface Contract {
  create: () => GradientCompression;
  /** The mean in float64; none for what is drawn at random. */
  oracle?: (n: number, ranks: number) => MeanOracle;
  tolerance?: number;
}

const under = { sgd, adamw, lion, lamb };

export function gradientContract(name: string, { create, oracle, tolerance = 1e-5 }: Contract): void {
  optimizerContract(`sgd with ${name}`, {
    create: () => compressed(sgd(), create()),
    oracle:
      oracle &&
      ((n, ranks) => {
        const mean = oracle(n, ranks);
        return (θ, g, { step, lr }) => {
          for (const [i, value] of mean(g, step).entries()) θ[i] = θ[i]! - lr * value;
        };
      }),
    tolerance,
  });

  const train = (ranks: number, steps: number, options: () => Partial<OptimizerOptions>) =>
    onRanks(ranks, async (group) => {
      const training = open(group, { algorithm: compressed(adamw(), create()), ...options() });
      const reports = await advance(training, steps);
      const θ = await floats(training.arena.parameters);
      await training.optimizer[Symbol.asyncDispose]();
      return { θ, reports };
    });

  describe(`the contract of ${name} beside others`, () => {
    it.each(Object.entries(under))(
      "leaves the same bits on all ranks under %s, and sends its closed form",
      async (_, algorithm) => {
        for (const ranks of [2, 3]) {
          const all = await train(ranks, 4, () => ({ algorithm: compressed(algorithm(), create()) }));
          for (const { θ, reports } of all) {
            expect(θ).toEqual(all[0]!.θ);
            for (const { bytes, closed } of reports) expect(bytes).toBe(closed);
          }
        }
      },
    );

    it("gives the same bits while backward runs, clipped by the global norm", async () => {
      const options = { clip: 1e-3, clipBy: "global" } as const;
      const off = await train(3, 4, () => options);
      const free = await train(3, 4, () => ({}));
      expect(off[0]!.θ).not.toEqual(free[0]!.θ);
      if (create().splits === "nowhere") return;
      const on = await train(3, 4, () => ({ ...options, overlap: "on" }));
      for (const { θ } of on) expect(θ).toEqual(off[0]!.θ);
    });

    it("leaves the same bits under Muon, whose own message follows the mean, also while backward runs", async () => {
      if (create().splits === "nowhere") return; // Muon's matrices share the model with vectors
      const options = (overlap: "on" | "off"): OptimizerOptions => ({
        algorithm: compressed(adamw(), create()),
        groups: [
          { match: ({ shape }) => shape.length === 2, algorithm: compressed(muon({ nsType: "f32" }), create()) },
        ],
        clip: 1e-3,
        overlap,
      });
      for (const ranks of [2, 3]) {
        const [off, on] = [await train(ranks, 3, () => options("off")), await train(ranks, 3, () => options("on"))];
        for (const { θ, reports } of [...off, ...on]) {
          expect(θ).toEqual(off[0]!.θ);
          for (const { bytes, closed } of reports) expect(bytes).toBe(closed);
        }
      }
    });

    it("is clipped by the norm of what all ranks received", async () => {
      const limit = 2 ** -10;
      await onRanks(2, async (group) => {
        const training = open(group, { algorithm: compressed(sgd(), create()), clip: limit });
        const before = await floats(training.arena.parameters);
        const { gradientNorm } = (await advance(training, 1, 1))[0]!;
        const after = await floats(training.arena.parameters);
        const moved = Math.hypot(...after.map((value, i) => value - before[i]!));
        expect(gradientNorm).toBeGreaterThan(limit);
        expect(moved).toBeGreaterThan(limit * 0.99);
        expect(moved).toBeLessThan(limit * 1.01);
      });
    });

    it("resumes bit for bit from a save at any step", async () => {
      const straight = await train(2, 6, () => ({}));
      for (const at of [0, 1, 3, 5]) {
        const resumed = await onRanks(2, async (group) => {
          const make = () => open(group, { algorithm: compressed(adamw(), create()) });
          const first = make();
          await advance(first, at);
          const second = make();
          noGrad(() => second.arena.parameters.copy_(first.arena.parameters));
          await second.optimizer.restore(at, savesOf(group.rank, 2, await stored(first.optimizer)));
          await first.optimizer[Symbol.asyncDispose]();
          await advance(second, 6);
          return floats(second.arena.parameters);
        });
        expect(resumed, `at ${at}`).toEqual(straight.map(({ θ }) => θ));
      }
    });

    it("goes on among another number of ranks", async () => {
      const saves = await onRanks(3, async (group) => {
        const training = open(group, { algorithm: compressed(adamw(), create()) });
        await advance(training, 2);
        return stored(training.optimizer);
      });
      const θ = await onRanks(2, async (group) => {
        const training = open(group, { algorithm: compressed(adamw(), create()) });
        await training.optimizer.restore(2, saves);
        await advance(training, 4);
        return floats(training.arena.parameters);
      });
      expect(θ[1]).toEqual(θ[0]);
    });
  });
}

function open(group: Group, options: OptimizerOptions) {
  const model = new Chain();
  const arena = new Arena(model);
  return { model, arena, group, optimizer: new Optimizer(arena, group, { compareEvery: 1, bucket: 256, ...options }) };
}

async function advance({ model, arena, group, optimizer }: ReturnType<typeof open>, until: number, lr = 0.01) {
  const reports = [];
  while (optimizer.steps < until) {
    arena.zeroGradients();
    const loss = model.loss(input(group.rank, optimizer.steps));
    const closed = optimizer.bytesSent();
    await optimizer.begin({ lr });
    await loss.backward();
    const { bytes, messages, gradientNorm } = await optimizer.step({ lr });
    reports.push({ bytes: bytes - 32 * messages, gradientNorm, closed });
  }
  return reports;
}

export const floats = async (tensor: Tensor) => [...((await tensor.toTypedArray()) as Float32Array)];

/** One parameter of a model, with the state that a compression under SGD has for it. */
export function spanOf(
  compression: GradientCompression,
  shape: readonly number[],
  ranks: Pick<Group, "rank" | "size">,
) {
  const algorithm = compressed(sgd(), compression);
  const [span] = spansOf(new Arena(new Single(shape)), ranks, { algorithm });
  return span!;
}

class Single extends Module {
  readonly weight: Parameter;
  constructor(shape: readonly number[]) {
    super();
    this.weight = new Parameter(zeros(shape), { role: "matrix" });
  }
}

/**
 * The means that a compression makes of this rank's gradients of one parameter, step by step, and its state in the end.
 */
export async function meansOf(
  group: Group,
  compression: GradientCompression,
  gradients: readonly Float32Array[],
  shape: readonly number[] = [gradients[0]!.length, 1],
) {
  const { vector, g, state } = spanOf(compression, shape, group);
  const flat = g.view(vector.n).narrow(0, 0, gradients[0]!.length); // without pads
  const means: number[][] = [];
  for (const [step, values] of gradients.entries()) {
    noGrad(() => flat.copy_(fromTypedArray(values)));
    await compression.mean(g, state, openExchange(group), { step, vector });
    means.push(await floats(flat));
  }
  return { means, state };
}

/**
 * An element's three sums over T steps on three ranks, in which step t counts decay^(T − 1 − t) times. Where nothing is
 * lost but by that decay of the errors, `sent` + `kept` is `given`.
 */
export interface Ledger {
  readonly sent: number[]; // all means
  readonly kept: number[]; // the mean of the ranks' errors, and the owner's
  readonly given: number[]; // the mean of all gradients
}

/** `error`, `ownerError`: the names of the state in which a compression keeps what it has not sent. */
export async function ledgerOf(
  create: () => GradientCompression,
  {
    error,
    ownerError,
    shape = [300, 1],
    decay = 1,
  }: { error: string; ownerError?: string; shape?: readonly number[]; decay?: number },
): Promise<Ledger> {
  const [ranks, steps] = [3, 25];
  const n = shape.reduce((a, b) => a * b, 1);
  const gradients = Array.from({ length: ranks }, (_, rank) =>
    Array.from({ length: steps }, (_, t) =>
      Float32Array.from({ length: n }, (_, i) => Math.sin(i * 1.7 + t * 2.3 + rank)),
    ),
  );
  const all = await onRanks(ranks, async (group) => {
    const { means, state } = await meansOf(group, create(), gradients[group.rank]!, shape);
    const kept = (await floats(state.elements![error]!)).map((value) => value / ranks);
    const owned = ownerError && state.owned?.[ownerError];
    if (owned) for (const [i, value] of (await floats(owned.values)).entries()) kept[owned.begin + i]! += value;
    return { means, kept };
  });
  const sum = (rows: readonly ArrayLike<number>[]) =>
    Array.from({ length: n }, (_, i) => rows.reduce((total, row) => total + row[i]!, 0));
  const weighed = (rows: readonly ArrayLike<number>[]) =>
    rows.map((row, t) => Array.from(row, (value) => value * decay ** (steps - 1 - t)));
  return {
    sent: sum(weighed(all[0]!.means)),
    kept: sum(all.map(({ kept }) => kept)),
    given: sum(gradients.flatMap(weighed)).map((value) => value / ranks),
  };
}
