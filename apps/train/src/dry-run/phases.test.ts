import { describe, expect, it } from "vitest";
import { phasesOf } from "./phases.ts";

describe("phases", () => {
  it.each([1, 7, 200, 201, 250_000])("are exact where few follow each other, in %i steps", (steps) => {
    const warmup = Math.ceil(steps / 3);
    const phases = phasesOf(steps, (step) => (step < warmup ? 800 : 25));
    const compression = { from: warmup, to: steps - 1, steps: steps - warmup, bytes: 25 };
    expect(phases).toEqual([
      { from: 0, to: warmup - 1, steps: warmup, bytes: 800 },
      ...(steps > warmup ? [compression] : []),
    ]);
  });

  it.each([500, 20_000])("are counted by their bytes where steps take turns, in %i steps", (steps) => {
    const phases = phasesOf(steps, (step) => (step < 10 ? 800 : step % 4 === 0 ? 25 : 0));
    const compressed = Math.ceil((steps - 12) / 4);
    expect(phases).toEqual([
      { from: 0, to: 9, steps: 10, bytes: 800 },
      { from: 10, to: steps - 1, steps: steps - 10 - compressed, bytes: 0 },
      { from: 12, to: steps - 4, steps: compressed, bytes: 25 },
    ]);
  });

  it.each([2500, 100_000])("are found where a rare step comes again, in %i steps", (steps) => {
    for (const late of [0, 1]) {
      const phases = phasesOf(steps, (step) => (step > 0 && (step + 1 - late) % 1000 === 0 ? 800 : 25), [1000]);
      const rare = Math.floor(steps / 1000) - (late && steps % 1000 === 0 ? 1 : 0);
      const count = (bytes: number) =>
        phases.filter((phase) => phase.bytes === bytes).reduce((sum, phase) => sum + phase.steps, 0);
      expect([count(800), count(25)]).toEqual([rare, steps - rare]);
    }
  });

  it("of a long run are found by few questions", () => {
    let asked = 0;
    phasesOf(1_000_000, (step) => {
      asked++;
      return step < 123_456 ? 1 : 2;
    });
    expect(asked).toBeLessThan(300);
  });
});
