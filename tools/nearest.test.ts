import { describe, expect, it } from "vitest";
import { editDistance, nearest } from "./nearest.ts";

describe("nearest", () => {
  const commands = ["train", "sample", "bench", "test", "check", "doctor", "setup", "env", "help"];

  it("finds the command that was meant", () => {
    const meant = {
      trian: "train",
      tset: "test",
      docter: "doctor",
      "set-up": "setup",
      benchmark: "bench",
      doc: "doctor",
      hlep: "help",
    };
    for (const [typed, command] of Object.entries(meant))
      expect([typed, nearest(typed, commands)]).toEqual([typed, command]);
  });

  it("says nothing where nothing is near", () => {
    expect(nearest("xylophone", commands)).toBeUndefined();
    expect(nearest("", commands)).toBeUndefined();
  });

  it("counts a swap of neighbours as one change", () => {
    expect(editDistance("abcd", "abdc")).toBe(1);
    expect(editDistance("kitten", "sitting")).toBe(3);
    expect(editDistance("", "abc")).toBe(3);
  });
});
