import { describe, expect, it } from "vitest";
import { OptionsError } from "./options-error.ts";
import { numberFrom, parseArguments, wholeNumberFrom, wordOf } from "./parse-arguments.ts";

const syntax = {
  command: "./terse try",
  flags: {
    masterPort: wholeNumberFrom({ least: 0, most: 65535 }),
    rate: { each: numberFrom({ least: 0 }) },
    engine: wordOf(["tcp", "gloo"]),
    out: String,
    record: "switch",
    page: { optional: (text: string) => (text === "" ? "here" : wordOf(["there"])(text)) },
  },
  overrides: ["steps", "optimizer"],
} as const;
const parse = (...argv: string[]) => parseArguments(argv, syntax);

describe("parseArguments", () => {
  it("takes a flag's value after a space or an equals sign", () => {
    expect(parse("--master-port", "80", "--out=a b=c", "--record", "--engine=gloo")).toEqual({
      help: false,
      flags: { masterPort: 80, out: "a b=c", record: true, engine: "gloo" },
      words: [],
      overrides: [],
      rest: undefined,
    });
  });

  it("keeps the last value of a flag, and all of a flag that may be repeated", () => {
    const { flags } = parse("--out", "a", "--rate", "1", "--out", "b", "--rate=2.5");
    expect(flags).toEqual({ out: "b", rate: [1, 2.5] });
  });

  it("lets the value of an optional flag be left out, and takes it after an equals sign", () => {
    expect(parse("--page", "--out", "a").flags).toEqual({ page: "here", out: "a" });
    expect(parse("--page=there", "word")).toMatchObject({ flags: { page: "there" }, words: ["word"] });
    expect(parse("--page", "there")).toMatchObject({ flags: { page: "here" }, words: ["there"] });
    expect(() => parse("--page=nowhere")).toThrow('--page: expected one of there, got "nowhere"');
  });

  it("keeps words, and everything after -- as it is", () => {
    expect(parse("one", "--out", "a", "two", "--", "--out", "-x", "--")).toMatchObject({
      flags: { out: "a" },
      words: ["one", "two", "--out", "-x", "--"],
      rest: ["--out", "-x", "--"],
    });
  });

  it("takes overrides after a space or an equals sign, in their order", () => {
    const { overrides, words } = parse("--steps", "5", "--optimizer.lr=1e-3", "--steps=6", "--optimizer.name", "lion");
    expect(overrides).toEqual(["steps=5", "optimizer.lr=1e-3", "steps=6", "optimizer.name=lion"]);
    expect(words).toEqual([]);
  });

  it.each([["--help"], ["-h"], ["--fast", "--help"], ["word", "-h"]])("asks for help: %s %s", (...argv) => {
    expect(parse(...argv).help).toBe(true);
  });

  it("leaves --help after -- alone", () => expect(parse("--", "--help").help).toBe(false));

  it.each([
    ["--master-prot 80", "--master-prot: unknown flag; did you mean --master-port? See ./terse try --help."],
    ["--zzz", "--zzz: unknown flag. See ./terse try --help."],
    ["--constructor=1", "--constructor: unknown flag."],
    ["-o a", "-o: unknown flag."],
    ["--step=5", "--step: unknown flag; did you mean --steps?"],
    ["--optimiser.lr=5", "--optimiser.lr: unknown flag; did you mean --optimizer.lr?"],
    ["--out", "--out needs a value; see ./terse try --help"],
    ["--out=", "--out needs a value"],
    ["--out --record", "--out needs a value"],
    ["--optimizer.lr", "--optimizer.lr needs a value"],
    ["--steps --record", "--steps needs a value"],
    ["--record=no", '--record takes no value, got "no"'],
    ["--help=3", '--help takes no value, got "3"'],
    ["--master-port 70000", '--master-port: expected a whole number from 0 to 65535, got "70000"'],
    ["--master-port 1.5", '--master-port: expected a whole number from 0 to 65535, got "1.5"'],
    ["--rate=-1", '--rate: expected a number ≥ 0, got "-1"'],
    ["--rate NaN", '--rate: expected a number ≥ 0, got "NaN"'],
    ["--engine glo", '--engine: expected one of tcp, gloo, got "glo"; did you mean gloo?'],
  ])("says what is wrong with %s", (words, sentence) => {
    expect(() => parse(...words.split(" "))).toThrow(sentence);
  });

  const keys = ["steps", "trace.steps", "optimizer.lr", "optimizer.warmup", "schedule.warmup", "optimizer.batchSize"];
  it.each([
    ["--lr=1", "--optimizer.lr"],
    ["--learning-rate=1", "--optimizer.lr"],
    ["--learningRate=1", "--optimizer.lr"],
    ["--batch-size 8", "--optimizer.batchSize"],
    ["--batchSize=8", "--optimizer.batchSize"],
    ["--batch=8", "--optimizer.batchSize"],
    ["--warmup=3", "--optimizer.warmup or --schedule.warmup"],
    ["--epochs=3", "--steps"],
    ["--step=3", "--steps"],
    ["--mastr-port=3", "--master-port"],
  ])("names, for %s, the key that ends like it: %s", (words, meant) => {
    expect(() => parseArguments(words.split(" "), { ...syntax, dotted: () => keys })).toThrow(
      `: unknown flag; did you mean ${meant}? See ./terse try --help.`,
    );
  });

  it("gives examples of another notation", () => {
    const flags = { size: wholeNumberFrom({ least: 1, examples: "350k or 7G" }, () => Number.NaN) };
    expect(() => parseArguments(["--size=1X"], { command: "./terse try", flags })).toThrow(
      '--size: expected a whole number ≥ 1, such as 350k or 7G, got "1X"',
    );
  });

  it("says everything that is wrong at once", () => {
    const wrong = () => parse("--rate", "x", "--zzz", "--out");
    expect(wrong).toThrow(OptionsError);
    expect(wrong).toThrow(/--rate: .*\n--zzz: .*\n--out needs a value/);
  });
});
