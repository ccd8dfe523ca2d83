/** What is said of local steps, and what is asked of them here: whether the recorded numbers show it. */
import type { Curve } from "../convergence/curves.ts";
import { asGood, better, type Expectation, expectationsTable, little, worse } from "../convergence/expectations.ts";
import { byCase, type Values } from "../measurement.ts";
import { recordedLines } from "../papers/recorded.ts";
import type { RecordedLine } from "../recording.ts";
import { table } from "../table.ts";
import { methods } from "./methods.ts";

// biome-ignore format: a table
export const expectations: readonly Expectation[] = [
  { words: "a round of 8 bits every 5 steps is at most 8 % behind Muon with messages in every step", source: "asked here", methods: ["muon-5-8-bits", "muon"], holds: ({ mean }) => mean <= 1.08 },
  { words: "our local steps in f32 are as good as PyTorch's", source: "PyTorch", methods: ["muon-10-f32", "pytorch-local-sgd-muon-10"], holds: asGood },
  { words: "Muon inside is better than AdamW inside", source: "MuLoCo", methods: ["muon-10-f32", "diloco-10"], holds: better },
  { words: "a longer interval is behind", source: "DiLoCo", methods: ["muon-10-f32", "muon-5-f32"], holds: worse },
  { words: "the momentum of the outer step makes it better", source: "DiLoCo", methods: ["diloco-10", "adamw-10-f32"], holds: better },
  { words: "a lone worker is as good with an outer step", source: "SNOO", methods: ["muon-10-alone", "muon"], holds: asGood },
  { words: "more workers are behind", source: "DiLoCo", methods: ["muon-10-f32-8-workers", "muon-10-f32-2-workers"], holds: worse },
  { words: "8 bits are as good as f32", source: "MuLoCo", methods: ["muon-5-8-bits", "muon-5-f32"], holds: asGood },
  { words: "4 bits are as good as f32", source: "Streaming DiLoCo", methods: ["muon-5-4-bits", "muon-5-f32"], holds: asGood },
  { words: "2 bits, means of bins, are a little behind 4", source: "SparseLoCo", methods: ["muon-5-2-bits-of-means", "muon-5-4-bits"], holds: little },
  { words: "1 bit both ways is as good as f32", source: "1-bit Adam", methods: ["muon-5-1-bit", "muon-5-f32"], holds: asGood },
  { words: "a delay of 4 steps is as good as none", source: "Streaming DiLoCo", methods: ["muon-10-4-bits-delay-4", "muon-10-4-bits"], holds: asGood },
  { words: "with the steps beside a round on top of it a delay of 18 steps costs less", source: "CoCoD-SGD", methods: ["muon-20-4-bits-delay-18-rebase", "muon-20-4-bits-delay-18"], holds: better },
  { words: "whole numbers of Lion's steps are as good as f32", source: "asked here", methods: ["lion-10-whole-numbers", "lion-10-f32"], holds: asGood },
  { words: "SparseLoCo is as good as DiLoCo", source: "SparseLoCo", methods: ["sparse-loco-10", "diloco-10"], holds: asGood },
];

/** A limit that this project has set itself, and what was measured: one value for each method. */
interface Asked {
  readonly words: string;
  readonly measured: (from: Recorded) => Measured[];
  readonly limit: readonly ["at least" | "at most", number];
}

interface Recorded {
  readonly values: Values;
  readonly curves: readonly Curve[];
}

interface Measured {
  readonly of: string;
  readonly value: number;
}

const asked: readonly Asked[] = [
  {
    words: "to the loss on 10 Mbit/s, × as fast as PyTorch's fastest",
    measured: toTheLoss("10mbit"),
    limit: ["at least", 40],
  },
  {
    words: "to the loss on 100 Mbit/s, × as fast as PyTorch's fastest",
    measured: toTheLoss("100mbit"),
    limit: ["at least", 4],
  },
  {
    words: "a step with rounds beside it ÷ one without messages, 10 Mbit/s and 200 ms",
    measured: inCases(/, 10mbit-200ms$/, "step_over_no_exchange"),
    limit: ["at most", 1.05],
  },
  {
    words: "a rank's own work of a round ÷ reading θ̄ and θ once, 4 bits",
    measured: inCases(/^round, 4 bits/, "round_over_stream"),
    limit: ["at most", 3],
  },
];

/** As the table of methods has it: from the losses and the times that are recorded now. */
function toTheLoss(rate: string): Asked["measured"] {
  return ({ curves }) =>
    curves.flatMap((curve) => {
      const value = curve.method in methods ? curve.toLoss(rate)?.ratio : undefined;
      return value === undefined ? [] : [{ of: curve.method, value }];
    });
}

function inCases(name: RegExp, metric: string): Asked["measured"] {
  return ({ values }) =>
    [...values].flatMap(([of, metrics]) => {
      const value = name.test(of) ? metrics.get(metric) : undefined;
      return value === undefined ? [] : [{ of: of.split(", ")[0]!, value }];
    });
}

export function expectationsText(lines: readonly RecordedLine[], curves: readonly Curve[]): string {
  const expected = expectationsTable([...recordedLines("convergence"), ...lines], expectations);
  const values = byCase(lines);
  const rows = asked.flatMap(({ words, measured, limit: [side, limit] }) => {
    const found = measured({ values, curves });
    const [best] = found.toSorted((a, b) => (side === "at least" ? b.value - a.value : a.value - b.value));
    if (!best) return [];
    const holds = side === "at least" ? best.value >= limit : best.value <= limit;
    return [[words, `${side} ${limit}`, `${best.value.toFixed(2)}, ${best.of}`, holds ? "yes" : "**no**"]];
  });
  const limits = rows.length > 0 && table(["asked", "", "measured, the best", "seen here"], rows);
  return [expected, limits].filter(Boolean).join("\n\n");
}
