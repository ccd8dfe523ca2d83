import type { Group } from "@terse/collectives";
import { Arena, fromTypedArray, Linear, noGrad } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { Optimizer, zeroOneAdam } from "../index.ts";
import { compensatedMean } from "../testing/compensated-mean.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { mean, type Oracle, optimizerContract } from "../testing/optimizer-contract.ts";
import { savesOf, stored } from "../testing/stored.ts";

const options = { beta1: 0.5, beta2: 0.75, eps: 2 ** -4, weightDecay: 0.25 } as const;

interface Policies {
  freeze: number;
  local: (step: number) => boolean; // outside of T_u
  perLayer: boolean;
  exact: boolean;
}

/** Algorithm 1 in float64, with T_v = {0, 1, 3, 7, …} for κ = 1. */
function oracle(n: number, ranks: number, { freeze, local, perLayer, exact }: Policies): Oracle {
  const zeros = () => new Array<number>(n).fill(0);
  const v = zeros();
  const [m, u] = [0, 1].map(() => Array.from({ length: ranks }, zeros)) as [number[][], number[][]];
  let rates = 0;
  const compensated = compensatedMean(ranks, { perLayer });
  return (θ, g, { step, lr }) => {
    const isRefresh = [0, 1, 3, 7].includes(step) && step < freeze;
    if (isRefresh) for (const [i, value] of mean(g).entries()) v[i] = 0.75 * v[i]! + 0.25 * value ** 2;
    if (isRefresh && exact) {
      for (const [i, value] of mean(g).entries()) {
        for (const own of m) own[i] = 0.5 * own[i]! + 0.5 * value;
        θ[i] = θ[i]! - lr * (m[0]![i]! / (Math.sqrt(v[i]!) + 2 ** -4) + 0.25 * θ[i]!);
      }
      return;
    }
    rates += lr;
    for (let r = 0; r < ranks; r++)
      for (let i = 0; i < n; i++) {
        m[r]![i] = 0.5 * m[r]![i]! + 0.5 * g[r]![i]!;
        u[r]![i] = v[i]! > 0 ? u[r]![i]! + lr * m[r]![i]! : 0;
      }
    for (let i = 0; i < n; i++) θ[i] = θ[i]! - lr * 0.25 * θ[i]!;
    if (local(step)) return; // θ stays what all ranks share
    const average = compensated(u, v);
    for (let i = 0; i < n; i++) {
      θ[i] = θ[i]! - average[i]! / (Math.sqrt(v[i]!) + 2 ** -4);
      for (let r = 0; r < ranks; r++) [m[r]![i], u[r]![i]] = [average[i]! / rates, 0];
    }
    rates = 0;
  };
}

for (const scale of ["per-layer", "fused"] as const)
  optimizerContract(`zero-one-adam with local steps, ${scale}`, {
    create: () => zeroOneAdam({ ...options, freeze: 2, kappa: 1, doubling: 1, localSteps: 2, scale }),
    oracle: (n, ranks) => {
      const local = (step: number) => step >= 4 && step % 2 === 0;
      return oracle(n, ranks, { freeze: 2, local, perLayer: scale === "per-layer", exact: true });
    },
    tolerance: 2e-6,
  });

for (const early of ["exact", "buffer"] as const)
  optimizerContract(`zero-one-adam with steps that refresh no variance, ${early}`, {
    create: () => zeroOneAdam({ ...options, freeze: 100, kappa: 1, early }),
    oracle: (n, ranks) =>
      oracle(n, ranks, { freeze: 100, local: () => false, perLayer: true, exact: early === "exact" }),
    tolerance: 2e-6,
  });

/** DeepSpeed's order in float64: the gradient in one bit between two refreshes. */
optimizerContract("zero-one-adam as DeepSpeed below `freeze`", {
  create: () => zeroOneAdam({ ...options, freeze: 100, kappa: 1, early: "gradient" }),
  oracle(n, ranks) {
    const [m, v] = [new Array<number>(n).fill(0), new Array<number>(n).fill(0)];
    const compensated = compensatedMean(ranks, { perLayer: true });
    return (θ, g, { step, lr }) => {
      const isRefresh = [0, 1, 3, 7].includes(step);
      const average = isRefresh ? mean(g) : compensated(g, v);
      for (let i = 0; i < n; i++) {
        m[i] = 0.5 * m[i]! + 0.5 * average[i]!;
        if (isRefresh) v[i] = 0.75 * v[i]! + 0.25 * average[i]! ** 2;
        θ[i] = θ[i]! - lr * (m[i]! / (Math.sqrt(v[i]!) + 2 ** -4) + 0.25 * θ[i]!);
      }
    };
  },
});

describe("zero-one-adam", () => {
  const n = 8 * 8;
  const schedule = { freeze: 4, kappa: 2, doubling: 4, localSteps: 4 };

  function open(group: Group) {
    const arena = new Arena(new Linear(8, 8, { bias: false }));
    const values = arena.parameters;
    noGrad(() => values.zero_().add_(1));
    return { arena, optimizer: new Optimizer(arena, group, { algorithm: zeroOneAdam(schedule), compareEvery: 1 }) };
  }

  async function advance({ arena, optimizer }: ReturnType<typeof open>, rank: number, until: number) {
    const seen: { bytes: number; closed: number; parametersDiffer: boolean; θ: number[] }[] = [];
    while (optimizer.steps < until) {
      const t = optimizer.steps;
      const g = new Float32Array(n).map((_, i) => Math.sin(i * 12.9 + t * 78.2 + rank));
      noGrad(() => arena.gradients.copy_(fromTypedArray(g)));
      const closed = optimizer.bytesSent();
      const { bytes, messages } = await optimizer.step({ lr: 0.01 });
      const θ = [...((await arena.parameters.toTypedArray()) as Float32Array)];
      seen.push({ bytes: bytes - 32 * messages, closed, parametersDiffer: optimizer.parametersDiffer, θ });
    }
    return seen;
  }

  it("refreshes, freezes, and leaves steps out as its policies say, and is the same on all ranks after each synchronisation", async () => {
    const all = await onRanks(2, (group) => advance(open(group), group.rank, 24));
    const oneBit = 2 * (4 + 4); // 32 signs and their scale up, and down
    const float = 4 * n;
    // T_v = {0, 1, 2}: the intervals are 1, 1, 2; then v is frozen. T_u: all to step 7, every 2nd to 11, then every
    // 4th.
    const wanted = Array.from({ length: 24 }, (_, t) => {
      const synchronises = t < 8 || (t < 12 ? (t - 3) % 2 === 0 : (t - 3) % 4 === 0);
      return t < 3 ? float : synchronises ? oneBit : 0;
    });
    for (const seen of all) {
      expect(seen.map(({ bytes }) => bytes)).toEqual(wanted);
      expect(seen.map(({ closed }) => closed)).toEqual(wanted);
    }
    for (const [t, { parametersDiffer, θ }] of all[0]!.entries()) {
      expect(parametersDiffer).toBe(wanted[t] === 0);
      if (parametersDiffer) expect(all[1]![t]!.θ).not.toEqual(θ);
      else expect(all[1]![t]!.θ).toEqual(θ);
    }
  });

  it("goes on bit for bit from a save in the middle of a round of local steps, of which the parameters are one rank's", async () => {
    const straight = await onRanks(3, async (group) => (await advance(open(group), group.rank, 20)).at(-1)!.θ);
    for (const at of [2, 7, 14, 15, 18]) {
      const resumed = await onRanks(3, async (group) => {
        const first = open(group);
        await advance(first, group.rank, at);
        const save = await stored(first.optimizer);
        const ofOne = (await first.arena.parameters.toTypedArray()) as Float32Array;
        await group.broadcast(ofOne, 0);
        const second = open(group);
        noGrad(() => second.arena.parameters.copy_(fromTypedArray(ofOne)));
        await second.optimizer.restore(at, savesOf(group.rank, 3, save));
        return (await advance(second, group.rank, 20)).at(-1)!.θ;
      });
      expect(resumed, `at ${at}`).toEqual(straight);
    }
  });

  it.each([1, 2, 4])(
    "goes on with %i ranks in place of 3 from the mean of where they are in a local round",
    async (to) => {
      const at = 14;
      const before = await onRanks(3, async (group) => {
        const training = open(group);
        const { parametersDiffer, θ } = (await advance(training, group.rank, at)).at(-1)!;
        return { parametersDiffer, θ, save: await stored(training.optimizer) };
      });
      expect(before.map(({ parametersDiffer }) => parametersDiffer)).toEqual([true, true, true]);
      const wanted = mean(before.map(({ θ }) => θ));
      const apart = Math.max(...before.flatMap(({ θ }) => θ.map((value, i) => Math.abs(value - wanted[i]!))));
      expect(apart).toBeGreaterThan(1e-3); // what each has moved by itself

      const after = await onRanks(to, async (group) => {
        const training = open(group);
        await training.optimizer.restore(
          at,
          before.map(({ save }) => save),
        );
        const θ = [...((await training.arena.parameters.toTypedArray()) as Float32Array)];
        return { θ, last: (await advance(training, group.rank, 16)).at(-1)!.θ };
      });
      for (const [i, value] of after[0]!.θ.entries()) expect(Math.abs(value - wanted[i]!)).toBeLessThan(2e-7);
      for (const { θ, last } of after) {
        expect(θ).toEqual(after[0]!.θ); // the mean of u moves all of them alike
        expect(last).toEqual(after[0]!.last);
      }
    },
  );
});
