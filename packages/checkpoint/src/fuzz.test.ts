import { describe, expect, it } from "vitest";
import { fuzz, makeTargets } from "../fuzz/targets.ts";
import { CheckpointError } from "./checkpoint-error.ts";

const targets = await makeTargets();

// fuzz/main.ts does the same for longer.
describe("a damaged file", () => {
  it.each(["header", "index", "manifest"])("is read truly, or refused in one line: %s", (name) => {
    const { accepted, refused } = fuzz(targets[name]!, 5000, 7);
    expect(accepted).toBeGreaterThan(0);
    expect(refused.size).toBeGreaterThan(2);
  });

  it("that makes a reader throw anything else is reported, with its text", () => {
    const target = { seeds: ['{"a":1}'], use: () => JSON.parse("{") };
    expect(() => fuzz(target, 1, 7)).toThrow(/^run 0 of seed 7: "/);
    const use = () => {
      throw new CheckpointError("file is wrong\nin two lines");
    };
    expect(() => fuzz({ ...target, use }, 1, 7)).toThrow(/^run 0 of seed 7: "/);
  });
});
