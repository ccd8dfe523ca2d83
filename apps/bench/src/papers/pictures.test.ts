import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { RecordedLine } from "../recording.ts";
import { papersPictures } from "./pictures.ts";
import { recordedLines } from "./recorded.ts";

/** Recorded lines of a row. */
const linesOf = (row: string, metrics: Readonly<Record<string, number>>): RecordedLine[] =>
  Object.entries(metrics).map(([metric, value]) => ({
    bench: "papers",
    setting: row,
    recorded: "2026-11-26T05:00Z",
    machine: "a machine",
    case: row,
    metric,
    value,
    unit: "",
  }));

const all = <T>(values: readonly T[], metrics: (value: T) => Record<string, number>): Record<string, number> =>
  Object.assign({}, ...values.map(metrics));

/** What each row records, and what its picture then says. */
const drawn: Readonly<Record<string, { metrics: Record<string, number>; says: readonly string[] }>> = {
  "lion-cub-figure-4": {
    metrics: all(["embedding.weight", "head.weight"], (name) => ({
      [`p50 ÷ mean of ${name}`]: 0.7,
      [`p90 ÷ mean of ${name}`]: 2.2,
      [`p99 ÷ mean of ${name}`]: 4.4,
      [`p999 ÷ mean of ${name}`]: name === "head.weight" ? 9 : 6,
      [`largest ÷ mean of ${name}`]: 40,
    })),
    says: ["Laplace", "normal", "head.weight", "99.9 %"],
  },
  "lion-cub-figure-5": {
    metrics: all([4, 8], (workers) =>
      all(["1 bit", "l1 4 bits", "linf 4 bits"], (name) => ({
        [`match of ${name}, ${workers} workers`]: 0.6,
        [`flip of ${name}, ${workers} workers`]: 0.05,
      })),
    ),
    says: ["4 workers", "8 workers", "L1 4 bits", "Q∞ 4 bits", "the opposite sign, share"],
  },
  "lion-cub-figure-6": {
    metrics: all(["none", "all"], (name) =>
      all([1, 2], (seed) => ({
        [`curve of ${name}, seed ${seed} after 0`]: 5,
        [`curve of ${name}, seed ${seed} after 50`]: 2 + seed / 10,
      })),
    ),
    says: ["none", "all", "steps"],
  },
  "lion-cub-figure-7": {
    metrics: all([0.9, 0.99], (beta2) => ({
      [`deviation, β₂ ${beta2}, step 100`]: 1e-3 * (1 - beta2),
      [`deviation, β₂ ${beta2}, step 400`]: 2e-3 * (1 - beta2),
    })),
    says: ["β₂ 0.9", "β₂ 0.99", "logarithmic"],
  },
  "lion-cub-figure-10": {
    metrics: all([2, 4], (ranks) =>
      all(["lion fp32", "lion bf16", "lion-cub 1-bit"], (side) => ({
        [`step_ms of ${side}, ${ranks} ranks`]: 100,
        [`exposed_ms_least of ${side}, ${ranks} ranks`]: 60,
      })),
    ),
    says: ["2 ranks", "16 bits", "communication"],
  },
  "dion-figure-1a": { metrics: { "loss of dion 0.25, seed 1": 2 }, says: ["muon", "dion-rank-0.125"] },
  "dion-figure-1b": {
    metrics: all([1, 4, 16], (batch) => ({
      [`loss of dion × ${batch}, seed 1`]: 2,
      [`loss of adamw × ${batch}, seed 1`]: 2.1,
    })),
    says: ["dion", "adamw", "times 32 rows in a step"],
  },
  "dion-figure-3a": {
    metrics: all([0.5, 0.25], (rank) => ({
      [`loss of with ${rank}, seed 1`]: 2,
      [`loss of without ${rank}, seed 1`]: 2.1,
    })),
    says: ["with error feedback", "without error feedback"],
  },
  "one-bit-lamb-figure-1": {
    metrics: all([100, 1000], (step) => ({
      [`ratio of blocks.0.mlp.up.weight after ${step}`]: 0.1,
      [`ratio of blocks.1.mlp.up.weight after ${step}`]: 0.1,
    })),
    says: ["blocks.0.mlp.up.weight", "scaling coefficient"],
  },
  "one-bit-lamb-figure-5": {
    metrics: all([100, 1000], (step) => ({ [`norm of blocks.0.mlp.up.weight after ${step}`]: 1e-3 / step })),
    says: ["blocks.0.mlp.up.weight", "norm of the variance"],
  },
};

describe("pictures of the papers' rows", () => {
  it("are all tried here", () => expect(Object.keys(papersPictures).toSorted()).toEqual(Object.keys(drawn).toSorted()));

  it.each(Object.entries(drawn))("%s is drawn from what its row records", (row, { metrics, says }) => {
    const svg = papersPictures[row]!(linesOf(row, metrics))!;
    for (const text of says) expect(svg).toContain(text);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
    expect(papersPictures[row]!([])).toBeUndefined();
  });

  it("stand in docs/results where their rows are recorded (drawn by ./terse bench papers --settings ROW --record)", () => {
    const lines = recordedLines("papers");
    const recorded = Object.keys(papersPictures).filter((row) => papersPictures[row]!(lines) !== undefined);
    const missing = recorded.filter(
      (row) => !existsSync(new URL(`../../../../docs/results/papers-${row}.svg`, import.meta.url)),
    );
    expect(missing).toEqual([]);
  });

  it("the bars of Figure 10 stack computing and waiting to the whole step", () => {
    const row = "lion-cub-figure-10";
    const svg = papersPictures[row]!(linesOf(row, drawn[row]!.metrics))!;
    const heights = (name: string) => {
      const [, bars] = new RegExp(`class="${name}"[^>]*>((?:<rect[^>]*>(?:</rect>)?)+)</g>`).exec(svg)!;
      return [...bars!.matchAll(/height="([\d.]+)"/g)].map(([, height]) => Number(height));
    };
    const [computing, waiting] = [heights("own"), heights("own-waiting")];
    expect(computing).toHaveLength(3);
    for (const [i, height] of waiting.entries()) expect(height / computing[i]!).toBeCloseTo(1.5, 1);
  });

  it("a layer outside of the first block is not among LAMB's coefficients, as in the paper", () => {
    const row = "one-bit-lamb-figure-1";
    expect(papersPictures[row]!(linesOf(row, drawn[row]!.metrics))).not.toContain("blocks.1");
  });
});
