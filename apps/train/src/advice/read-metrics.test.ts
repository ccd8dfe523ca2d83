import { expect, it } from "vitest";
import { parseMetrics } from "./read-metrics.ts";

it("says which lines of metrics.jsonl are none, and reads the others", () => {
  const line = (step: number) => `{"step":${step}}\n`;
  const [whole, cut] = [line(0) + line(1), '{"step":2,"train/lo'];
  const lines = [{ step: 0 }, { step: 1 }];
  expect(parseMetrics("")).toEqual({ lines: [], problem: undefined });
  expect(parseMetrics(whole)).toEqual({ lines, problem: undefined });
  expect(parseMetrics(whole.trimEnd())).toEqual({ lines, problem: undefined });
  expect(parseMetrics(whole + cut)).toEqual({ lines, problem: "the last line is cut short, and is left out" });
  expect(parseMetrics(`${line(0)}${cut}\n${line(1)}`)).toEqual({
    lines,
    problem: "line 2 cannot be read, and is left out",
  });
  expect(parseMetrics(`null\n${whole}\n[]\n${cut}`).problem).toBe(
    "4 lines, from line 1 on, cannot be read, and are left out",
  );
});
