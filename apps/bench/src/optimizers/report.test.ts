import { expect, it } from "vitest";
import type { RecordedLine } from "../recording.ts";
import { optimizersReport } from "./report.ts";

it("has a row for each case, in the order of the lines, and a dash where nothing is compared", () => {
  const line = (name: string, metric: string, value: number, unit: string) =>
    ({ case: `${name}, 64 Mi parameters`, metric, value, unit, setting: name }) as unknown as RecordedLine;
  const lines = [
    line("sgd", "step_ms", 120, "ms"),
    line("sgd", "torch_ms", 240, "ms"),
    line("sgd", "over_torch", 0.5, "ratio"),
    line("demo", "step_ms", 900, "ms"),
  ];
  const report = optimizersReport(lines, { machine: "a machine", when: "today" });
  const rows = report.split("\n").filter((row) => row.startsWith("| "));
  expect(rows.slice(2).map((row) => row.split(" | ").length)).toEqual([5, 5]);
  expect(rows[2]).toMatch(/^\| sgd \| 120.* \| 240.* \| 0\.5.* \| – \|$/);
  expect(rows[3]).toMatch(/^\| demo \| 900.* \| – \| – \| – \|$/);
});
