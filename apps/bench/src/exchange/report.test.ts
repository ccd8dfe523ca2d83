import { expect, it } from "vitest";
import { barsIn } from "../testing/bars-in.ts";
import { exchangePicture, exchangeReport } from "./report.ts";

const of = (name: string, values: Record<string, number>) =>
  Object.entries(values).map(([metric, value]) => ({ case: name, metric, value, unit: "" }));
const lines = [
  ...of("1-bit 16 Mi ×2 100mbit", {
    ...{ time: 200, encode: 20, wire: 180, vote: 2, decode: 10, wire_alone: 168, wrong: 0, link_use: 0.9 },
    speedup_over_f32: 30,
  }),
  ...of("f32 16 Mi ×2 100mbit", { time: 6000, wrong: 0, link_use: 0.95 }),
  ...of("1-bit 16 Mi ×2 loopback TCP", { time: 15, encode: 6, wire: 8, vote: 1, decode: 5, wire_alone: 3, wrong: 0 }),
  ...of("f32 64 MiB ×2 loopback TCP", { time: 60, wrong: 0 }),
];

it("has a row with the phases of each 1-bit exchange", () => {
  const text = exchangeReport(lines, { machine: "2 cores", when: "2x100mbit: 2026-11-21 22:00 UTC" });
  expect(text).toContain("| 16 Mi ×2 100mbit | 20.0 | 180.0 | 2.0 | 10.0 | 200.0 | 168.0 |\n");
  expect(text).toContain("| 16 Mi ×2 loopback TCP | 6.0 | 8.0 | 1.0 | 5.0 | 15.0 | 3.0 |\n");
});

it("draws 16 Mi floats in each setting, finds dense ones by their bytes, and marks the waiting for the wire", () => {
  const svg = exchangePicture(lines)!;
  // 520 wide: 6000 ms, 60 ms.
  expect(barsIn(svg).map(([name, , width]) => [name, width])).toEqual([
    ["own", expect.closeTo((32 / 6000) * 520, 1)],
    ["own", 520],
    ["own-waiting", expect.closeTo((168 / 6000) * 520, 1)],
    ["own", 104],
    ["own", 520],
    ["own-waiting", 26],
  ]);
});
