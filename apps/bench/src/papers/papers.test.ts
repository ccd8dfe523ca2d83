import { chanceOfTie } from "@terse/train/agreement";
import { describe, expect, it } from "vitest";
import type { RecordedLine } from "../recording.ts";
import { isMeasurable, type MeasurableItem, Readings } from "./item.ts";
import { papers, papersSuite } from "./papers.ts";
import { papersReport } from "./report.ts";

const items = Object.assign({}, ...papers.map((paper) => paper.items)) as Record<string, MeasurableItem>;

async function measured(name: string): Promise<Map<string, number>> {
  const values = new Map<string, number>();
  for await (const { metric, value } of papersSuite[name]!({ overrides: [] })) values.set(metric, value);
  return values;
}

describe("the rows of the papers", () => {
  it("are the figures, tables and theorems of four papers, each named once", () => {
    const names = papers.flatMap((paper) => Object.keys(paper.items));
    expect(new Set(names).size).toBe(names.length);
    expect(Object.keys(papersSuite)).toEqual(names);
    expect(names.length).toBeGreaterThanOrEqual(51);
    const all = papers.flatMap((paper) => Object.values(paper.items));
    expect(all.filter(isMeasurable).length).toBeGreaterThanOrEqual(46);
  });

  // The numbers that the papers print, and the formulas that they come from
  it.each([
    ["one-bit-lamb-volume", { "volume, 128 tokens": 4.57, "volume, 512 tokens": 4.11 }],
    ["one-bit-lamb-end-to-end", { "128 tokens": 2.84, "512 tokens": 2.165 }],
    ["lion-cub-table-a1", { link: 49.12 }], // 2 · 3/4 · 774 M · 32 bits in 756.3 ms
    ["one-bit-lamb-table-5-ethernet", { "share, 64 nodes, batch 8 Ki": 0.908 }], // printed as 91 %
    ["lion-cub-figure-2", { verdict: 1 }],
    ["lion-cub-figure-c2", { verdict: 1 }],
    ["lion-cub-table-1", { verdict: 1, "counted ÷ closed form, direct, 5 ranks": 1 }],
    ["distributed-lion-bandwidth", { verdict: 1, "bits down, average, 8 workers": 4 }],
    ["dion-theorem-2.1", { verdict: 1 }],
  ])("%s measures what it says", async (name, expected) => {
    const values = await measured(name);
    for (const [metric, value] of Object.entries(expected)) expect(values.get(metric), metric).toBeCloseTo(value, 2);
    expect(items[name]!.measured(new Readings(values))).not.toContain("NaN");
  });

  it("are judged by their rules", () => {
    const ratios = (ratio: number) =>
      new Readings(
        new Map(
          [1, 2].flatMap(
            (seed) =>
              [
                [`loss of always minus, seed ${seed}`, ratio],
                [`loss of alternating, seed ${seed}`, 1],
              ] as [string, number][],
          ),
        ),
      );
    expect(items["lion-cub-figure-3"]!.holds(ratios(1.2))).toBe(true);
    expect(items["lion-cub-figure-3"]!.holds(ratios(1.05))).toBe(false);
    expect(items["lion-cub-figure-3"]!.holds(ratios(Number.NaN))).toBe(false);
  });

  it("say what is missing where they rest on numbers that are not there", () => {
    expect(() => items["dion-figure-3b"]!.holds(new Readings(new Map([["loss of dion, seed 1", 2]])))).toThrow(
      "no loss of dion-svd, seed 1 was measured",
    );
  });

  it("know the chance of a tie", () => {
    expect([2, 4, 8, 3].map(chanceOfTie)).toEqual([0.5, 0.375, 35 / 128, 0]);
  });
});

describe("the report", () => {
  const line = (setting: string, metric: string, value: number): RecordedLine => ({
    bench: "papers",
    setting,
    recorded: "2026-11-26T05:00Z",
    machine: "a machine",
    case: setting,
    metric,
    value,
    unit: "",
  });

  it("has a row for each item: yes, no, not measurable here, or not yet measured", () => {
    const text = papersReport(
      [
        line("one-bit-lamb-end-to-end", "128 tokens", 2.84),
        line("one-bit-lamb-end-to-end", "512 tokens", 2.16),
        line("one-bit-lamb-volume", "volume, 128 tokens", 5),
        line("one-bit-lamb-volume", "volume, 512 tokens", 4.11),
      ],
      { machine: "a machine", when: "now" },
    );
    const row = (name: string) => text.split("\n").find((each) => each.endsWith(`\`${name}\` |`))!;
    for (const name of Object.keys(papersSuite)) expect(row(name).match(/(?<!\\)\|/g), name).toHaveLength(8);
    expect(row("one-bit-lamb-end-to-end")).toContain("| yes |");
    expect(row("one-bit-lamb-volume")).toContain("| **no** |");
    expect(row("one-bit-lamb-theorem-1")).toContain("| not measurable here |");
    expect(row("lion-cub-figure-3")).toContain("| not yet measured |");
  });
});
