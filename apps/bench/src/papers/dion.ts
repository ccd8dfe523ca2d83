/** The rows of Ahn and Xu 2025, "Dion", first arXiv version. */
import { loopback } from "@terse/collectives";
import { type Algorithm, adamw, dion as dionOf, muon, Optimizer } from "@terse/optimizers";
import { fromTypedArray, noGrad } from "@terse/tensor";
import { arenaOfMatrices } from "../arena-of-matrices.ts";
import { type Items, isFalling, type Readings, reading } from "./item.ts";
import { asGood } from "./recorded.ts";
import { losses, sweep } from "./trained.ts";

const shapes = [
  [256, 256],
  [384, 192],
  [512, 1024],
] as const; // large enough that no mean goes directly (docs/algorithms.md, all-reduce)
const ranksOf = (m: number, n: number) => [Math.min(m, n) / 8, Math.min(m, n) / 4];

/** Payload bytes that each rank sends in one step, counted on the wire. */
async function sentBytes(algorithm: () => Algorithm, shape: readonly [number, number], ranks: number): Promise<number> {
  const groups = loopback(ranks);
  const counted = await Promise.all(
    groups.map(async (group) => {
      const arena = arenaOfMatrices(ranks, shape); // each rank owns one
      const inOneBucket = { bucket: arena.parameters.length, compareEvery: 0 };
      await using optimizer = new Optimizer(arena, group, { algorithm: algorithm(), ...inOneBucket });
      const values = Float32Array.from({ length: arena.gradients.length }, (_, i) => Math.sin(3 * i + group.rank));
      noGrad(() => arena.gradients.copy_(fromTypedArray(values)));
      const { bytes, messages } = await optimizer.step({ lr: 0.01 });
      await group.close();
      return bytes - 32 * messages;
    }),
  );
  return Math.max(...counted);
}

/** A matrix after steps of Dion on P ranks, and on one rank that has the mean of their gradients. */
async function distributedBeside(ranks: number): Promise<number> {
  const gradient = (rank: number, step: number, n: number) =>
    Float32Array.from({ length: n }, (_, i) => noise(i + n * (step + 100 * rank)));
  const train = async (size: number, gradientOf: (rank: number, step: number, n: number) => Float32Array) => {
    const [first] = await Promise.all(
      loopback(size).map(async (group) => {
        const arena = arenaOfMatrices(2, [40, 24]);
        await using optimizer = new Optimizer(arena, group, { algorithm: dionOf({ rank: 0.25 }), compareEvery: 0 });
        for (let step = 0; step < 20; step++) {
          const values = gradientOf(group.rank, step, arena.gradients.length);
          noGrad(() => arena.gradients.copy_(fromTypedArray(values)));
          await optimizer.step({ lr: 0.01 });
        }
        const values = (await arena.parameters.toTypedArray()) as Float32Array;
        await group.close();
        return values;
      }),
    );
    return first!;
  };
  const mean = (_: number, step: number, n: number) => {
    const all = Array.from({ length: ranks }, (_, r) => gradient(r, step, n));
    return all[0]!.map((_, i) => all.reduce((sum, of) => sum + of[i]!, 0) / ranks);
  };
  const [distributed, central] = [await train(ranks, gradient), await train(1, mean)];
  const largest = Math.max(...central.map(Math.abs));
  return Math.max(...distributed.map((x, i) => Math.abs(x - central[i]!))) / largest;
}

/** Numbers in [−1, 1) that look random: a matrix of them has full rank. */
const noise = (i: number) => (2 * ((Math.sin(i + 1) * 43758.5453) % 1)) % 1;

/** The batch grows by micro-batches. */
const byBatch = { values: [1, 4, 16], steps: 200, at: (rows: number) => ({ changes: [`accumulate=${rows}`] }) };

export const dion: Items = {
  "dion-table-1": {
    what: "Table 1",
    claim:
      "Along the data axis a matrix of m × n takes m n words in a step of Adam and of Muon, and (m + n) r in one of Dion.",
    rule: "the bytes counted on the wire are 2 (P − 1)/P · 4 times these words, on 2, 4 and 8 ranks",
    async *measure() {
      for (const [m, n] of shapes) {
        for (const ranks of [2, 4, 8]) {
          const per = ((2 * (ranks - 1)) / ranks) * 4 * ranks; // bytes a word, for as many matrices as ranks
          const words = async (algorithm: () => Algorithm) => (await sentBytes(algorithm, [m, n], ranks)) / per;
          const inCase = `${m} × ${n}, ${ranks} ranks`;
          yield reading(`words of adam ÷ m n, ${inCase}`, (await words(() => adamw())) / (m * n), "ratio");
          yield reading(`words of muon ÷ m n, ${inCase}`, (await words(() => muon())) / (m * n), "ratio");
          for (const r of ranksOf(m, n)) {
            const dionWords = await words(() => dionOf({ rank: r }));
            yield reading(`words of dion ÷ (m + n) r, ${inCase}, r ${r}`, dionWords / ((m + n) * r), "ratio");
          }
        }
      }
    },
    measured(readings) {
      const all = readings.all("words of ").map(([, ratio]) => ratio);
      return `counted ÷ form ${Math.min(...all).toFixed(4)} to ${Math.max(...all).toFixed(4)}, ${all.length} cases`;
    },
    holds: (readings) => readings.all("words of ").every(([, ratio]) => Math.abs(ratio - 1) < 1e-9),
  },

  "dion-figure-1a": {
    what: "Figure 1a",
    claim:
      "At a large batch Dion with d/8 trains faster than Adam, and smaller ranks degrade gracefully: d/4, d/8, d/16.",
    rule: "loss of Muon < d/4 < d/8 < d/16, and d/8 ≤ AdamW, with 8 times the batch, seed 1",
    measure: (row) =>
      losses({
        row,
        seeds: [1],
        trials: [
          { name: "adamw", method: "adamw", changes: ["accumulate=8"] },
          { name: "muon", method: "muon", changes: ["accumulate=8"] },
          ...[0.25, 0.125, 0.0625].map((rank) => ({
            name: `dion ${rank}`,
            method: "dion",
            changes: ["accumulate=8", `optimizer.rank=${rank}`],
          })),
        ],
      }),
    measured: (readings) => lossesText(readings.all("loss of ")),
    holds(readings) {
      const of = (name: string) => readings.of(`loss of ${name}, seed 1`);
      const inOrder = ["muon", "dion 0.25", "dion 0.125", "dion 0.0625"].map(of);
      return isFalling(inOrder.toReversed()) && of("dion 0.125") <= of("adamw");
    },
  },

  "dion-figure-1b": sweep({
    what: "Figure 1b",
    claim: "Dion's lead over Adam grows with the batch.",
    rule: "loss of Dion d/4 ÷ AdamW's after 200 steps falls from 32 rows to 128 and to 512, seed 1",
    methods: ["dion", "adamw"],
    ...byBatch,
    holds: isFalling,
  }),

  "dion-figure-2": sweep({
    what: "Figure 2",
    claim: "With a larger batch Muon degrades and Dion of full rank does not.",
    rule: "loss of Dion of full rank ÷ Muon's after 200 steps falls from 32 rows to 128 and to 512, seed 1",
    methods: ["dion-rank-full", "muon"],
    ...byBatch,
    holds: isFalling,
  }),

  "dion-figure-3a": {
    what: "Figure 3a",
    claim: "Without error feedback the loss grows steeply as the rank falls.",
    rule: "after 2,000 steps the loss without ÷ with error feedback grows from d/2 to d/8, and is above 1.05 at d/8, seed 1",
    measure: (row) =>
      losses({
        row,
        seeds: [1],
        steps: 2000,
        trials: [0.5, 0.25, 0.125].flatMap((rank) =>
          [true, false].map((feedback) => ({
            name: `${feedback ? "with" : "without"} ${rank}`,
            method: "dion",
            changes: [`optimizer.rank=${rank}`, `optimizer.errorFeedback=${feedback}`],
          })),
        ),
      }),
    measured: (readings) =>
      feedbackRatios(readings)
        .map((r, i) => `d/${2 ** (i + 1)}: ${r.toFixed(3)}`)
        .join(", "),
    holds(readings) {
      const ratios = feedbackRatios(readings);
      return isFalling(ratios.toReversed()) && ratios.at(-1)! > 1.05;
    },
  },

  "dion-figure-3b": asGood({
    what: "Figure 3b",
    claim: "One power iteration is as good as the singular value decomposition.",
    rule: "loss of Dion ÷ that by singular values at most 1.02 in the mean over the seeds (bench convergence)",
    method: "dion",
    other: "dion-svd",
  }),

  "dion-theorem-2.1": {
    what: "Theorem 2.1",
    claim: "The distributed algorithm takes the steps of the centralised one.",
    rule: "after 20 steps the largest difference ÷ the largest parameter is at most 10⁻⁵, on 2, 4 and 8 ranks",
    async *measure() {
      for (const ranks of [2, 4, 8])
        yield reading(`difference on ${ranks} ranks`, await distributedBeside(ranks), "ratio");
    },
    measured: (readings) => `at most ${Math.max(...readings.all("difference").map(([, x]) => x)).toExponential(1)}`,
    holds: (readings) => readings.all("difference").every(([, difference]) => difference <= 1e-5),
  },
};

const lossesText = (all: readonly (readonly [string, number])[]) =>
  all.map(([name, loss]) => `${name.replace(/, seed 1$/, "")}: ${loss.toFixed(3)}`).join(", ");

const feedbackRatios = (readings: Readings) =>
  [0.5, 0.25, 0.125].map(
    (rank) => readings.of(`loss of without ${rank}, seed 1`) / readings.of(`loss of with ${rank}, seed 1`),
  );
