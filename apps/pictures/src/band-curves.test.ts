import { parseHTML } from "linkedom";
import { expect, it } from "vitest";
import { type Axis, type BandCurve, bandCurves } from "./band-curves.ts";

const bySteps: Axis<BandCurve> = { label: "steps", logarithmic: false, at: (_, step) => step, text: String };
const byTens: Axis<BandCurve> = { label: "tens", logarithmic: true, at: (_, step) => 10 ** step, text: String };
const point = (step: number, mean: number, around = 0) => ({ step, mean, least: mean - around, most: mean + around });
const label = "loss";

it("draws a line and a band for each curve by each axis, and escapes their names", () => {
  const curves = [
    { text: "a < b", points: [point(0, 4), point(1, 2, 1)] },
    { text: "c", points: [point(0, 3), point(1, 1)] },
  ];
  const svg = bandCurves(curves, [bySteps, byTens], { title: "Losses", label })!;
  const { document } = parseHTML(svg);
  expect([...document.querySelectorAll('[aria-label="line"] path')]).toHaveLength(4);
  expect([...document.querySelectorAll('[aria-label="area"] path')]).toHaveLength(4);
  expect(svg).toContain("a &lt; b");
  // The band of the first curve opens from a point to twice the height of the distance between its means.
  const [, band] = /aria-label="area"[^>]*><path d="([^"]*)"/.exec(svg)!;
  const heights = [...band!.matchAll(/,([\d.]+)/g)].map(([, y]) => Number(y));
  expect(heights[0]).toBe(heights[3]);
  expect(Math.abs(heights[2]! - heights[1]!)).toBeCloseTo(Math.abs(heights[0]! - (heights[1]! + heights[2]!) / 2), 0);
});

it("leaves out what an axis does not have, and draws nothing of no curve", () => {
  const none: Axis<BandCurve> = { ...bySteps, at: () => undefined };
  const svg = bandCurves([{ text: "a", points: [point(0, Number.NaN), point(1, 2)] }], [none], { title: "", label })!;
  expect(svg).not.toMatch(/NaN|undefined/);
  expect(bandCurves([], [bySteps], { title: "", label })).toBeUndefined();
  expect(bandCurves([{ text: "a", points: [point(1, 2)] }], [], { title: "", label })).toBeUndefined();
});

it("has a logarithmic vertical axis without what is not positive", () => {
  const points = [point(0, 1e-2), point(1, 1e-4), point(2, 0), point(3, 1e-6)];
  const svg = bandCurves([{ text: "a", points }], [bySteps], { title: "", label, logarithmic: true })!;
  const [, line] = /aria-label="line"[^>]*><path d="M([^"]*)"/.exec(svg)!;
  const heights = line!.split("L").map((at) => Number(at.split(",")[1]));
  expect(heights).toHaveLength(3);
  expect(heights[1]! - heights[0]!).toBeCloseTo(heights[2]! - heights[1]!, 0); // a hundred times less each
  expect(svg).not.toMatch(/NaN|Infinity/);
});
