import { parseOptions, v } from "@terse/options";
import { describe, expect, it } from "vitest";
import { startWarmup, warmsUp, warmup, warmupSteps } from "./warmup.ts";

describe("the length of a warm-up", () => {
  const read = (length: unknown) => parseOptions(v.object({ warmup }), { warmup: length }, "").warmup;

  it("is a number of steps, a fraction of the run, or found", () => {
    expect([80, 0.2, "auto"].map((length) => warmupSteps(read(length), 400))).toEqual([80, 80, "auto"]);
    expect(warmupSteps(0.001, 400)).toBe(1);
    const warming = startWarmup(2);
    expect([0, 1, 2].map((step) => warmsUp(warming, step))).toEqual([true, true, false]);
  });

  it("of an optimizer that does not know the run is not a fraction", () => {
    expect(() => startWarmup(0.2)).toThrow(
      "warmup: 0.2 is a fraction of the run, whose length an optimizer does not know; give steps, as warmupSteps(0.2, steps) does",
    );
    expect(() => read(1.5)).toThrow(/warmup: .*got 1\.5/);
  });
});
