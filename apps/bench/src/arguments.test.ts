import { expect, it } from "vitest";
import { readArguments, usageOf } from "./arguments.ts";

async function* nothing() {}
const suites = { train: { "2x100mbit": nothing, "2x1gbit": nothing, "4x1gbit": nothing }, step: { step: nothing } };

it("selects all settings, or the named ones, in the suite's order", () => {
  expect(readArguments(["train"], suites)).toEqual({
    suite: "train",
    settings: ["2x100mbit", "2x1gbit", "4x1gbit"],
    record: false,
    overrides: [],
  });
  expect(readArguments("train --settings 4x1gbit,2x100mbit --record --json -".split(" "), suites)).toEqual({
    suite: "train",
    settings: ["2x100mbit", "4x1gbit"],
    record: true,
    json: "-",
    overrides: [],
  });
  expect(readArguments("train --from lines.jsonl --record".split(" "), suites)).toMatchObject({ from: "lines.jsonl" });
});

it("takes keys of a recipe for the suites that train by one, but not into the record", () => {
  const keys = { train: ["steps", "optimizer"] };
  expect(readArguments(["train", "--steps=4", "--optimizer.lr=3e-4"], suites, keys)?.overrides).toEqual([
    "steps=4",
    "optimizer.lr=3e-4",
  ]);
  expect(() => readArguments(["step", "--steps=4"], suites, keys)).toThrow("--steps: unknown flag");
  expect(() => readArguments(["train", "--steps=4", "--record"], suites, keys)).toThrow(
    "--record keeps runs of the recipe as it is; leave out steps=4, or --record",
  );
});

it("trains on the user's own data, and draws what was measured into a file, where a suite can", () => {
  const given = (words: string) => readArguments(words.split(" "), suites, { train: ["steps"] }, { train: true });
  expect(given("train --data my/text --steps 40 --svg losses.svg")).toMatchObject({
    overrides: ['data.path="my/text"', "steps=40"],
    svg: "losses.svg",
  });
  expect(() => given("step --data my/text")).toThrow("--data: step trains by no recipe; these suites do: train");
  expect(() => given("step --svg losses.svg")).toThrow("--svg: step has no picture; these suites have one: train");
  expect(() => given("train --data my/text --record")).toThrow("--record keeps runs of the recipe as it is");
});

it.each([
  ["train --settings 2x1gbot", /did you mean.*2x1gbit/s],
  ["trian", /did you mean.*train/s],
  ["train --setings 2x1gbit", "--setings: unknown flag; did you mean --settings?"],
  ["train --json", "--json needs a value; see ./terse bench --help"],
  ["train --settings --record", "--settings needs a value"],
  ["train -j", "-j: unknown flag. See ./terse bench --help."],
  ["train --record=no", '--record takes no value, got "no"'],
  ["train step", "give one suite at a time, not 2: train and step"],
])("says what is wrong with %s", (words, sentence) => {
  expect(() => readArguments(words.split(" "), suites)).toThrow(sentence);
});

it("lists every suite and its settings, in lines that fit a terminal", () => {
  for (const words of [[], ["--help"], ["train", "-h"]]) expect(readArguments(words, suites)).toBeUndefined();
  const usage = usageOf(suites, { train: "steps on slow links", step: "a step" });
  expect(usage).toContain("  train  steps on slow links\n         2x100mbit 2x1gbit 4x1gbit\n  step   a step\n");
  expect(Math.max(...usage.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
});
