import { expect, it } from "vitest";
import { CaseWriter, valueText } from "./text.ts";

it("writes values with short units", () => {
  const said = (value: number, unit: string) => valueText(value, unit);
  expect([said(186.23456, "ms"), said(8272.4, "ms"), said(12_345.6, "ms"), said(0.01234, "ms")]).toEqual([
    "186.2 ms",
    "8272 ms",
    "12.35 s",
    "12.34 µs",
  ]);
  expect([said(2_097_152, "B"), said(32, "B"), said(0.9612, "fraction"), said(31.789, "ratio"), said(0, "")]).toEqual([
    "2.097 MB",
    "32 B",
    "96.1 %",
    "31.79 ×",
    "0",
  ]);
});

it("writes a case once, with all its metrics, in lines no wider than the terminal", () => {
  let said = "";
  const writer = new CaseWriter((text) => {
    said += text;
  }, 50);
  const add = (name: string, metric: string, value: number) => writer.add({ case: name, metric, value, unit: "ms" });
  add("f32", "step_ms_min", 1);
  add("f32", "step_ms_max", 2);
  add("f32", "exposed_ms", 3);
  expect(said).toBe("");
  add("1-bit", "time", 4);
  writer.end();
  expect(said).toBe(
    "f32\n  step ms min 1 ms · step ms max 2 ms\n  exposed ms 3 ms\n1-bit                                   time 4 ms\n",
  );
});
