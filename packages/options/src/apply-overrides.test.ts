import { describe, expect, it } from "vitest";
import { applyOverrides } from "./apply-overrides.ts";
import { OptionsError } from "./options-error.ts";
import { parseYaml, parseYamlValue } from "./yaml.ts";

describe("applyOverrides", () => {
  it("sets values by their dotted names, keeps the others, and does not change its input", () => {
    const tree = { steps: 10, optimizer: { name: "lion", lr: 1, betas: [0.9, 0.99] }, model: null };
    const before = structuredClone(tree);
    const overrides = ["optimizer.lr=3e-4", "--steps=10_000", "model.size=tiny", "run.name=first", "steps=20_000"];
    expect(applyOverrides(tree, overrides)).toEqual({
      steps: 20_000,
      optimizer: { name: "lion", lr: 3e-4, betas: [0.9, 0.99] },
      model: { size: "tiny" },
      run: { name: "first" },
    });
    expect(tree).toEqual(before);
  });

  it("changes and adds entries of lists by their numbers, from 0", () => {
    const tree = { groups: [{ lr: 1, name: "lion" }, { name: "sgd" }] };
    const before = structuredClone(tree);
    expect(applyOverrides(tree, ["groups.0.lr=2", "groups.2.name=adamw", "groups.2.lr=3", "other.0=4"])).toEqual({
      groups: [{ lr: 2, name: "lion" }, { name: "sgd" }, { name: "adamw", lr: 3 }],
      other: [4],
    });
    expect(tree).toEqual(before);
  });

  it("splits at the first equals sign", () => {
    expect(applyOverrides({}, ["data.path=a=b"])).toEqual({ data: { path: "a=b" } });
  });

  it.each([
    ["optimizer.lr", "optimizer.lr: an override is written name=value, such as optimizer.lr=3e-4"],
    ["", ": an override is written name=value, such as optimizer.lr=3e-4"],
    ["=3", '=3: "" is not a name; write dotted names, such as optimizer.lr=3e-4'],
    ["a..b=3", 'a..b=3: "" is not a name; write dotted names, such as optimizer.lr=3e-4'],
    ["a b=3", 'a b=3: "a b" is not a name; write dotted names, such as optimizer.lr=3e-4'],
    ["lr=", 'lr=: no value; write lr=VALUE, lr=null or lr=""'],
    ["__proto__.x=1", '__proto__.x=1: "__proto__" is not a name; write dotted names, such as optimizer.lr=3e-4'],
    ["steps.a=1", "steps.a: steps is 10, not a group of options; override steps as a whole"],
    ["0.a=1", '0.a=1: "0" is not a name; write dotted names, such as optimizer.lr=3e-4'],
    ["steps.0=1", "steps.0: steps is 10, not a group of options; override steps as a whole"],
    ["list.-1=1", 'list.-1=1: "-1" is not a name; write dotted names, such as optimizer.lr=3e-4'],
    [
      "list.a=1",
      "list.a: list is a list of 2; write list.NUMBER with a number from 0 to 2, or the whole list as list=[…]",
    ],
    [
      "list.3=1",
      "list.3: list is a list of 2; write list.NUMBER with a number from 0 to 2, or the whole list as list=[…]",
    ],
  ])("refuses %j in one line", (override, message) => {
    expect(() => applyOverrides({ steps: 10, list: [1, 2] }, [override])).toThrow(new OptionsError([message]));
    expect(Object.prototype).not.toHaveProperty("x");
  });

  it("reports a bracket that is not closed", () => {
    expect(() => applyOverrides({}, ["betas=[0.9, 0.99"])).toThrow(/^betas: not valid YAML: /);
  });

  it("reports every malformed override at once", () => {
    expect(() => applyOverrides({}, ["a", "b=1", "c="])).toThrow(/^a: .*\nc=: .*$/);
  });

  it("treats names that every object inherits as ordinary groups", () => {
    expect(Object.keys(applyOverrides({}, ["toString.x=1"]))).toEqual(["toString"]);
  });
});

describe("parseYamlValue", () => {
  // Left: the text. Right: its value by the YAML 1.2 core schema (chapter 10.3), with grouped digits.
  it.each([
    ["3e-4", 3e-4],
    ["1E6", 1e6],
    ["10_000", 10_000],
    ["-1_000_000", -1e6],
    ["1_000.5", 1000.5],
    ["1_0e3", 10_000],
    ["0x1F", 31],
    ["0o17", 15],
    ["007", 7],
    [".5", 0.5],
    ["+2", 2],
    ["true", true],
    ["False", false],
    ["yes", "yes"],
    ["on", "on"],
    ["null", null],
    ["~", null],
    [".inf", Number.POSITIVE_INFINITY],
    ["1e", "1e"],
    ["10_", "10_"],
    ["_10", "_10"],
    ["1__0", "1__0"],
    ["12:30", "12:30"],
    ['"10"', "10"],
    ["'a''b'", "a'b"],
    ["[0.9, 0.99]", [0.9, 0.99]],
    ["[1_000, a, [true]]", [1000, "a", [true]]],
    ["{ a: 1, b: x }", { a: 1, b: "x" }],
    ["run #3", "run #3"],
    ["a: b", "a: b"],
    ["- a", "- a"],
    ["*.txt", "*.txt"],
    ["&x", "&x"],
    ["!tag", "!tag"],
    ["@", "@"],
    ["%", "%"],
    ["/data/my text", "/data/my text"],
    ["  7 ", 7],
  ])("reads %j as %j", (text, value) => expect(parseYamlValue(text, "x")).toEqual(value));

  it("refuses text after a closed bracket or quote", () => {
    expect(() => parseYamlValue("[1] 2", "betas")).toThrow(/^betas: not valid YAML/);
    expect(() => parseYamlValue('"a" b', "name")).toThrow(/^name: not valid YAML/);
  });
});

describe("parseYaml", () => {
  it("parses a recipe by the same rules", () => {
    expect(parseYaml("steps: 10_000 # long\noptimizer: { name: lion, lr: 1e-4 }\nlist:\n  - 1_0\n", "r.yaml")).toEqual({
      steps: 10_000,
      optimizer: { name: "lion", lr: 1e-4 },
      list: [10],
    });
    expect(parseYaml("", "r.yaml")).toBeNull();
  });

  it.each(["a: 1\na: 2\n", "a: [1\nb: 2\n", "a: *nowhere\n", "a: 1\n b: 2\n", "\tx: 1"])(
    "names the file of %j",
    (text) => {
      expect(() => parseYaml(text, "recipes/my.yaml")).toThrow(OptionsError);
      expect(() => parseYaml(text, "recipes/my.yaml")).toThrow(/^recipes\/my\.yaml: not valid YAML: /);
    },
  );

  it("names the line", () => {
    expect(() => parseYaml("steps: 1\nsteps: 2\n", "my.yaml")).toThrow(/line 2/);
  });

  it("refuses aliases that expand exponentially", () => {
    const levels = Array.from({ length: 12 }, (_, i) => `l${i}: &l${i} [${i ? Array(9).fill(`*l${i - 1}`) : "x"}]`);
    expect(() => parseYaml(levels.join("\n"), "bomb.yaml")).toThrow(/^bomb\.yaml: not valid YAML: /);
  });
});
