import { describe, expect, it } from "vitest";
import { editDistance, nearest } from "./nearest.ts";

describe("editDistance", () => {
  // Known values: kitten/sitting 3, Saturday/Sunday 3 (Wagner and Fischer). CA/ABC is 2 because a transposed pair may
  // be edited again; the restricted distance is 3.
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
  const known = ["lr", "beta1", "beta2", "weightDecay", "steps", "nproc-per-node"];

  it.each([
    ["beta11", "beta1"],
    ["bata2", "beta2"],
    ["weight_decay", "weightDecay"],
    ["WEIGHT-DECAY", "weightDecay"],
    ["step", "steps"],
    ["weight", "weightDecay"],
    ["ebta1", "beta1"],
  ])("finds, for %s, %s", (word, meant) => expect(nearest(word, known)).toBe(meant));

  it.each([
    ["learningRate", "lr"],
    ["learning_rate", "lr"],
    ["epochs", "steps"],
    ["ranks", "nproc-per-node"],
    ["world_size", "nproc-per-node"],
  ])("finds, for %s, %s, which is another word for it", (word, meant) => {
    expect(nearest(word, known)).toBe(meant);
    expect(nearest(word, ["beta1"])).toBeUndefined();
  });

  it.each(["momentum", "x", "", "zz", "-"])("finds nothing similar to %j", (word) => {
    expect(nearest(word, known)).toBeUndefined();
  });

  it.each([
    ["rank", "matrixApproximationRank"],
    ["startIteration", "startPowerSGDIter"],
    ["errorFeedback", "useErrorFeedback"],
    ["start_powerSGD_iter", "startPowerSGDIter"],
    ["seed", "randomSeed"],
    ["adjustLr", "adjustLrFn"],
  ])("finds, for %s, %s, which has the same parts and more", (word, meant) => {
    const keys = [
      "matrixApproximationRank",
      "startPowerSGDIter",
      "minCompressionRate",
      "useErrorFeedback",
      "warmStart",
    ];
    expect(nearest(word, [...keys, "randomSeed", "adjustLrFn"])).toBe(meant);
    expect(nearest(meant, [word])).toBe(word);
  });

  it("does not take the parts of another word, or a short one, for the same", () => {
    expect(nearest("startRatio", ["startPowerSGDIter"])).toBeUndefined();
    expect(nearest("lr", ["adjustLrFn"])).toBeUndefined();
  });

  it("does not find a word of which half of the letters differ", () => {
    expect(nearest("data", ["beta"])).toBeUndefined();
    expect(nearest("bata", ["beta"])).toBe("beta");
  });

  it("returns undefined if no words are known", () => expect(nearest("lr", [])).toBeUndefined());
});

describe("nearest, for the commands of ./terse", () => {
  const commands = ["train", "sample", "bench", "test", "check", "doctor", "setup", "env", "help"];

  it("finds the intended command", () => {
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

  it("finds nothing if no command is similar", () => {
    expect(nearest("xylophone", commands)).toBeUndefined();
    expect(nearest("", commands)).toBeUndefined();
  });

  it("counts a transposition of neighbours as one change", () => {
    expect(editDistance("abcd", "abdc")).toBe(1);
    expect(editDistance("kitten", "sitting")).toBe(3);
    expect(editDistance("", "abc")).toBe(3);
  });
});
