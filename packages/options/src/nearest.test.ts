import { describe, expect, it } from "vitest";
import { editDistance, nearest } from "./nearest.ts";

describe("editDistance", () => {
  // Values of the literature: kitten/sitting 3, Saturday/Sunday 3 (Wagner and Fischer); CA/ABC is 2 only where a
  // transposed pair may be edited again (the restricted distance says 3).
  it.each([
    ["kitten", "sitting", 3],
    ["saturday", "sunday", 3],
    ["ca", "abc", 2],
    ["ab", "ba", 1],
    ["", "abc", 3],
    ["abc", "", 3],
    ["same", "same", 0],
  ])("%s to %s is %i", (a, b, distance) => expect(editDistance(a, b)).toBe(distance));

  it("is a metric on short words: symmetric, zero only for equals, and the triangle inequality holds", () => {
    const words = ["", "a", "b", "ab", "ba", "abc", "acb", "cab", "bca", "aab", "abab", "baba"];
    for (const a of words)
      for (const b of words) {
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, b) === 0).toBe(a === b);
        for (const c of words) expect(editDistance(a, c)).toBeLessThanOrEqual(editDistance(a, b) + editDistance(b, c));
      }
  });
});

describe("nearest", () => {
  const known = ["lr", "beta1", "beta2", "weightDecay", "steps"];

  it.each([
    ["beta11", "beta1"],
    ["bata2", "beta2"],
    ["weight_decay", "weightDecay"],
    ["WEIGHT-DECAY", "weightDecay"],
    ["step", "steps"],
    ["weight", "weightDecay"],
    ["ebta1", "beta1"],
  ])("takes %s for %s", (word, meant) => expect(nearest(word, known)).toBe(meant));

  it.each(["momentum", "x", "", "zz", "-"])("finds nothing near %j", (word) => {
    expect(nearest(word, known)).toBeUndefined();
  });

  it("takes a word with half of its letters wrong for another word", () => {
    expect(nearest("data", ["beta"])).toBeUndefined();
    expect(nearest("bata", ["beta"])).toBe("beta");
  });

  it("says undefined when nothing is known", () => expect(nearest("lr", [])).toBeUndefined());
});

describe("the nearest of a command line's words", () => {
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
