import { expect, it } from "vitest";
import type { RecordedLine } from "../recording.ts";
import { curvesOf } from "./curves.ts";
import { lossCurves } from "./loss-curves.ts";
import { convergenceReport } from "./report.ts";

const losses = { "lion, 32 bit": [2, 2.2, 2.1], "lion-cub, 1 bit": [2.1, 2.2, 2.2] };

const lines = Object.entries(losses).flatMap(([method, last], i) =>
  last.flatMap((loss, seed) => {
    const line = (metric: string, value: number): RecordedLine => ({
      bench: "convergence",
      setting: `seed-${seed + 1}`,
      recorded: "2026-11-22T10:00Z",
      machine: "a machine",
      case: method,
      metric,
      value,
      unit: "nats/byte",
    });
    return [
      line("validation_loss", loss),
      line("sent_per_step", i === 0 ? 32e6 : 1e6),
      line("loss_at_0", 5.6),
      line("loss_at_20", loss + 1),
      line("loss_at_40", loss),
    ];
  }),
);

it("gives the mean over the seeds, the least and the most, and ratios within a seed", () => {
  const [lion, cub] = curvesOf(lines);
  expect(lion).toMatchObject({ method: "lion, 32 bit", seeds: 3, last: { least: 2, most: 2.2 }, ratio: { mean: 1 } });
  expect(lion!.last.mean).toBeCloseTo(2.1, 12);
  expect(cub!.ratio.most).toBeCloseTo(1.05, 12);
  expect(cub!.ratio.least).toBe(1);
  expect(cub!.points.map(({ step }) => step)).toEqual([0, 20, 40]);
});

it("says in the picture how many seeds there are, and which axis is logarithmic", () => {
  const picture = lossCurves(lines);
  expect(picture).toContain("3 seeds");
  expect(picture).toContain("lion, 32 bit: 2.100 (2.000 to 2.200)");
  expect(picture).toContain("bytes that one worker has sent, logarithmic");
  expect(picture).not.toContain("NaN");
  expect(lossCurves(lines.filter(({ setting }) => setting === "seed-1"))).toContain("1 seed:");
});

it("has a row for each method, and the recipe in words", () => {
  const report = convergenceReport(lines, { machine: "a machine", when: "today" });
  expect(report).toContain("| lion-cub, 1 bit | 2.167 (2.100 to 2.200) | 1.033 (1.000 to 1.050) | 1.00 MB | 1/32 |");
  expect(report).toContain("- lion-cub, 1 bit: the recipe as it is");
  expect(report).toMatch(/steps, η \d/);
});
