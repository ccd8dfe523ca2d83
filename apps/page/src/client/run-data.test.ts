import { describe, expect, it } from "vitest";
import { quantity } from "./quantities.ts";
import { RunData } from "./run-data.ts";

function runOf(lines: readonly object[]): RunData {
  const run = new RunData({ name: "a run", recipe: { steps: 100 }, problems: [] });
  for (const line of lines) run.add(JSON.stringify(line));
  return run;
}

describe("a run", () => {
  it("places its lines by steps taken, by seconds and by bytes, as the sums in them say", () => {
    const run = runOf([
      { step: 0, "val/loss": 5 },
      { step: 0, "train/loss": 5, elapsed_seconds: 2, total_bytes: 100 },
      { step: 10, "train/loss": 4, elapsed_seconds: 22, total_bytes: 1100 },
      { step: 6, "val/loss": 4.5 },
    ]);
    expect(run.columns.get("val/loss")).toEqual({ steps: [0, 6], values: [5, 4.5] });
    expect(run.columns.get("train/loss")!.steps).toEqual([1, 11]); // after the step
    expect([run.at(0, "seconds"), run.at(1, "seconds"), run.at(11, "seconds")]).toEqual([0, 2, 22]);
    expect([run.at(6, "seconds"), run.at(6, "bytes"), run.at(6, "steps")]).toEqual([12, 600, 6]); // half-way
    expect(run.at(99, "bytes")).toBe(1100);
    expect([run.steps, run.stepsToTake]).toEqual([11, 100]);
  });

  it("adds up the steps of lines without sums", () => {
    const run = runOf([
      { step: 0, "train/loss": 5, step_seconds: 2, sent_bytes: 10 },
      { step: 10, "train/loss": 4, step_seconds: 0.5, sent_bytes: 20 },
    ]);
    expect([run.at(11, "seconds"), run.at(11, "bytes")]).toEqual([2 + 10 * 0.5, 10 + 10 * 20]);
  });

  it("counts lines that it cannot read, and keeps the others", () => {
    const run = runOf([{ step: 0, "train/loss": 5 }]);
    for (const line of ['{"step":1,"train/lo', "null", "[]", '{"no":"step"}', ""]) run.add(line);
    expect([run.unreadable, run.steps]).toEqual([5, 1]);
    run.forget();
    expect([run.unreadable, run.steps, run.columns.size]).toEqual([0, 0, 0]);
  });

  it("knows lists, texts, and by which signal it was stopped until it goes on", () => {
    const run = runOf([{ step: 0, "train/loss": 5, "ranks/compute_seconds": [1, 2], emulated_link: "100mbit" }]);
    expect(run.listOf("ranks/compute_seconds")).toEqual([1, 2]);
    expect(run.listOf("emulated_link")).toBeUndefined();
    run.add('{"step":3,"stopped":"SIGINT"}');
    expect([run.stopped, run.steps]).toEqual(["SIGINT", 3]);
    run.add('{"step":1,"train/loss":4}');
    expect([run.stopped, run.steps]).toEqual([undefined, 2]);
  });
});

describe("a quantity", () => {
  it.each([
    [0.0123, "s", "12.3 ms"],
    [4.5e-5, "s", "45.0 µs"],
    [1.5, "s", "1.50 s"],
    [95, "s", "95.0 s"],
    [3725, "s", "1:02:05 h"],
    [125, "s", "2:05 min"],
    [522_900, "B", "523 kB"],
    [12, "B", "12.0 B"],
    [0.163, "share", "16.3 %"],
    [4e-5, "share", "< 0.1 %"],
    [0, "share", "0 %"],
    [1690, "count", "1.69k"],
    [3e-4, "", "3.00e-4"],
    [1234, "steps", "1,234"],
    [0, "B", "0 B"],
  ] as const)("%d %s is %s", (value, unit, text) => expect(quantity(value, unit)).toBe(text));

  it("of an axis has as many digits as its marks need", () => {
    expect([0.12, 0.1225, 0.125].map((value) => quantity(value, "s", 0.0025))).toEqual([
      "120.0 ms",
      "122.5 ms",
      "125.0 ms",
    ]);
    expect([1e6, 1.5e6].map((value) => quantity(value, "B", 5e5))).toEqual(["1.0 MB", "1.5 MB"]);
  });
});
