import * as v from "valibot";
import { describe, expect, expectTypeOf, it } from "vitest";
import { OptionsError } from "./options-error.ts";
import { parseOptions } from "./parse-options.ts";
import {
  finite,
  flag,
  nonNegativeInteger,
  oneOf,
  positive,
  positiveFloat,
  positiveInteger,
  text,
  unitInterval,
  unitIntervalFloat,
} from "./schemas.ts";

const optimizer = v.object({
  lr: positive,
  beta1: v.optional(unitInterval, 0.9),
  beta2: v.optional(unitInterval, 0.99),
  zero: v.optional(oneOf(["plus", "minus", "alternate", "hold"]), "alternate"),
});
const recipe = v.object({
  steps: v.optional(positiveInteger, 100),
  seed: v.optional(nonNegativeInteger, 0),
  optimizer,
  overlap: v.optional(flag, true),
  exchange: v.optional(
    v.variant("name", [
      v.object({ name: v.literal("dense"), dtype: v.optional(oneOf(["f32", "bf16"]), "f32") }),
      v.object({ name: v.literal("majority"), bucketBytes: v.optional(positiveInteger, 1 << 20) }),
    ]),
    { name: "majority" },
  ),
});

function problemsOf(schema: v.GenericSchema, input: unknown, where = ""): readonly string[] {
  try {
    parseOptions(schema, input, where);
  } catch (error) {
    expect(error).toBeInstanceOf(OptionsError);
    expect((error as OptionsError).message).toBe((error as OptionsError).lines.join("\n"));
    return (error as OptionsError).lines;
  }
  throw new Error("parseOptions accepted the input");
}

describe("parseOptions", () => {
  it("fills in defaults, nested ones too, and types the result", () => {
    const options = parseOptions(recipe, { optimizer: { lr: 3e-4 } }, "recipe");
    expect(options).toEqual({
      steps: 100,
      seed: 0,
      optimizer: { lr: 3e-4, beta1: 0.9, beta2: 0.99, zero: "alternate" },
      overlap: true,
      exchange: { name: "majority", bucketBytes: 1 << 20 },
    });
    expectTypeOf(options.optimizer.zero).toEqualTypeOf<"plus" | "minus" | "alternate" | "hold">();
    expectTypeOf(options.steps).toEqualTypeOf<number>();
  });

  it("accepts undefined if all options have defaults", () => {
    expect(parseOptions(v.object({ lr: v.optional(positive, 1) }), undefined, "x")).toEqual({ lr: 1 });
  });

  it("checks numbers for kernels as the 32-bit floats that kernels take", () => {
    const kernel = v.object({ lr: positiveFloat, beta: v.optional(unitIntervalFloat, 0.9) });
    expect(parseOptions(kernel, { lr: 3e38 }, "")).toEqual({ lr: 3e38, beta: 0.9 });
    expect(problemsOf(kernel, { lr: 1e39 })).toEqual([
      "lr: expected a number > 0 as a 32-bit float, got 1e+39, which is Infinity there",
    ]);
    expect(problemsOf(kernel, { lr: 1e-50, beta: 1 - 1e-12 })).toEqual([
      "lr: expected a number > 0 as a 32-bit float, got 1e-50, which is 0 there",
      "beta: expected a number ≥ 0 and < 1 as a 32-bit float, got 0.999999999999, which is 1 there",
    ]);
    expect(problemsOf(kernel, { lr: 1, beta: 1e-50 })).toEqual([
      "beta: expected a number ≥ 0 and < 1 as a 32-bit float, got 1e-50, which is 0 there",
    ]);
    expect(parseOptions(kernel, { lr: 1, beta: 0 }, "")).toEqual({ lr: 1, beta: 0 });
    expect(problemsOf(kernel, { lr: -1 })).toEqual(["lr: expected a number > 0, got -1"]);
  });

  it("reports an unknown key with the nearest name and all known names", () => {
    expect(problemsOf(optimizer, { lr: 1, beta11: 0.5 }, "optimizer")).toEqual([
      "optimizer.beta11: unknown option; did you mean beta1? (known: lr, beta1, beta2, zero)",
    ]);
    expect(problemsOf(optimizer, { lr: 1, nesterov: true }, "optimizer")).toEqual([
      "optimizer.nesterov: unknown option (known: lr, beta1, beta2, zero)",
    ]);
  });

  it("reports an unknown key once, also in a strict object", () => {
    expect(problemsOf(v.strictObject({ a: v.optional(flag) }), { b: 1, c: 2 })).toEqual([
      "b: unknown option (known: a)",
      "c: unknown option (known: a)",
    ]);
  });

  it("accepts unknown keys in a loose object and in one with a rest", () => {
    expect(parseOptions(v.looseObject({ a: flag }), { a: true, b: 1 }, "")).toEqual({ a: true, b: 1 });
    expect(parseOptions(v.objectWithRest({ a: flag }, finite), { a: true, b: 1 }, "")).toEqual({ a: true, b: 1 });
    expect(problemsOf(v.objectWithRest({ a: flag }, finite), { a: true, b: "x" })).toEqual([
      'b: expected a number, got "x"',
    ]);
  });

  it.each([
    [{ lr: "fast" }, 'optimizer.lr: expected a number > 0, got "fast"'],
    [{ lr: 0 }, "optimizer.lr: expected a number > 0, got 0"],
    [{ lr: Number.NaN }, "optimizer.lr: expected a number > 0, got NaN"],
    [{ lr: Number.POSITIVE_INFINITY }, "optimizer.lr: expected a finite number > 0, got Infinity"],
    [{ lr: Number.NEGATIVE_INFINITY }, "optimizer.lr: expected a finite number > 0, got -Infinity"],
    [{ lr: null }, "optimizer.lr: expected a number > 0, got null"],
    [{}, "optimizer.lr: missing; expected a number > 0"],
    [{ lr: 1, beta1: 1 }, "optimizer.beta1: expected a number ≥ 0 and < 1, got 1"],
    [{ lr: 1, beta1: [0.9] }, "optimizer.beta1: expected a number ≥ 0 and < 1, got [0.9]"],
    [
      { lr: 1, zero: "pluss" },
      'optimizer.zero: expected one of plus, minus, alternate, hold, got "pluss"; did you mean plus?',
    ],
    [{ lr: 1, zero: 1 }, "optimizer.zero: expected one of plus, minus, alternate, hold, got 1"],
    [null, "optimizer: expected a group of options (lr, beta1, beta2, zero), got null"],
    ["lion", 'optimizer: expected a group of options (lr, beta1, beta2, zero), got "lion"'],
  ])("describes the problem of %j", (input, line) => {
    expect(problemsOf(optimizer, input, "optimizer")).toEqual([line]);
  });

  it.each([
    [1.5, "steps: expected an integer ≥ 1, got 1.5"],
    [-1.5, "steps: expected an integer ≥ 1, got -1.5"],
    [2 ** 60, "steps: expected an integer ≥ 1 and within ±(2^53 − 1), got 1152921504606847000"],
  ])("reports a value that breaks several conditions once: %d", (steps, line) => {
    for (const schema of [positiveInteger, v.optional(positiveInteger, 1)])
      expect(problemsOf(v.object({ steps: schema }), { steps })).toEqual([line]);
  });

  it("reports every problem at once, each with its dotted path", () => {
    const input = { step: 5, steps: 0, optimizer: { lr: -1, beta: 0.9 }, overlap: "yes" };
    expect(problemsOf(recipe, input)).toEqual([
      "step: unknown option; did you mean steps? (known: steps, seed, optimizer, overlap, exchange)",
      "optimizer.beta: unknown option; did you mean beta1? (known: lr, beta1, beta2, zero)",
      "steps: expected an integer ≥ 1, got 0",
      "optimizer.lr: expected a number > 0, got -1",
      'overlap: expected true or false, got "yes"',
    ]);
  });

  it("knows the keys of the chosen branch of a variant", () => {
    const given = (exchange: unknown) => problemsOf(recipe, { optimizer: { lr: 1 }, exchange }, "recipe");
    expect(given({ name: "dense", bucketBytes: 5 })).toEqual([
      "recipe.exchange.bucketBytes: unknown option (known: name, dtype)",
    ]);
    expect(given({ name: "dense", dtype: "f3" })).toEqual([
      'recipe.exchange.dtype: expected one of f32, bf16, got "f3"; did you mean f32?',
    ]);
    expect(given({ name: "majorty" })).toEqual([
      'recipe.exchange.name: expected one of dense, majority, got "majorty"; did you mean majority?',
    ]);
    expect(given({})).toEqual(["recipe.exchange.name: missing; expected one of dense, majority"]);
    expect(given(3)).toEqual(["recipe.exchange: expected a group of options with name, got 3"]);
  });

  it("checks inside lists, records, unions, nullables and recursive schemas", () => {
    type Tree = { size: number; children?: Tree[] | undefined };
    const tree: v.GenericSchema<Tree> = v.object({
      size: positive,
      children: v.optional(v.array(v.lazy(() => tree))),
    });
    expect(problemsOf(tree, { size: 1, children: [{ size: 1, children: [{ size: 0, siz: 1 }] }] }, "tree")).toEqual([
      "tree.children.0.children.0.siz: unknown option; did you mean size? (known: size, children)",
      "tree.children.0.children.0.size: expected a number > 0, got 0",
    ]);
    const clip = v.object({ clip: v.nullable(v.union([positive, v.object({ norm: positive }), v.array(positive)])) });
    expect(parseOptions(clip, { clip: null }, "")).toEqual({ clip: null });
    expect(problemsOf(clip, { clip: { norm: "x" } })).toEqual(['clip.norm: expected a number > 0, got "x"']);
    expect(problemsOf(clip, { clip: { norms: 1 } })).toEqual([
      "clip.norms: unknown option; did you mean norm? (known: norm)",
      "clip.norm: missing; expected a number > 0",
    ]);
    expect(problemsOf(clip, { clip: [1, -2] })).toEqual(["clip.1: expected a number > 0, got -2"]);
    expect(problemsOf(clip, { clip: "on" })).toEqual([
      'clip: expected a number > 0 or a group of options (norm) or a list (each a number > 0) or null, got "on"',
    ]);
    const lists = v.object({ betas: v.tuple([positive, positive]), named: v.tuple([v.string(), v.boolean()]) });
    expect(problemsOf(lists, { betas: 1, named: 2 })).toEqual([
      "betas: expected a list of 2 (each a number > 0), got 1",
      "named: expected a list of 2 (a string, true or false), got 2",
    ]);
    const perLayer = v.record(v.string(), optimizer);
    expect(problemsOf(perLayer, { head: { lr: 1, bta1: 0 } }, "layers")).toEqual([
      "layers.head.bta1: unknown option; did you mean beta1? (known: lr, beta1, beta2, zero)",
    ]);
  });

  it("knows the keys of all parts of an intersection", () => {
    const both = v.intersect([v.object({ a: flag }), v.object({ b: flag })]);
    expect(parseOptions(both, { a: true, b: false }, "")).toEqual({ a: true, b: false });
    expect(problemsOf(both, { a: true, b: false, c: 1 })).toEqual(["c: unknown option (known: a, b)"]);
    expect(problemsOf(both, { a: true, b: 2 })).toEqual(["b: expected true or false, got 2"]);
  });

  it("reports a failed v.check by its own message", () => {
    const schema = v.pipe(
      v.object({ warmup: positive, steps: positive }),
      v.check(({ warmup, steps }) => warmup <= steps, "warmup must not be longer than steps"),
    );
    expect(problemsOf(schema, { warmup: 5, steps: 3 }, "schedule")).toEqual([
      "schedule: warmup must not be longer than steps",
    ]);
    expect(problemsOf(schema, { warmup: 5, steps: 3, warm: 1 }, "schedule")).toContain(
      "schedule.warm: unknown option; did you mean warmup? (known: warmup, steps)",
    );
  });

  it("treats names that every object inherits as unknown keys", () => {
    expect(problemsOf(optimizer, { lr: 1, toString: 1 })).toEqual([
      "toString: unknown option (known: lr, beta1, beta2, zero)",
    ]);
    expect(problemsOf(optimizer, JSON.parse('{ "lr": 1, "__proto__": { "beta1": 0 } }'))).toEqual([
      "__proto__: unknown option (known: lr, beta1, beta2, zero)",
    ]);
  });

  it("says how a number or a word of YAML becomes a string", () => {
    expect(problemsOf(v.object({ labels: v.array(text) }), { labels: [1, "2", true] })).toEqual([
      `labels.0: expected a string that is not empty, got 1; in quotes it is a string: "1", in a shell '"1"'`,
      `labels.2: expected a string that is not empty, got true; in quotes it is a string: "true", in a shell '"true"'`,
    ]);
  });

  it("shortens long values", () => {
    expect(problemsOf(v.object({ name: positive }), { name: "x".repeat(1000) })[0]!.length).toBeLessThan(120);
    expect(problemsOf(v.object({ name: text }), { name: "" })).toEqual([
      'name: expected a string that is not empty, got ""',
    ]);
  });
});
