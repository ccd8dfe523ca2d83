import { expect, it } from "vitest";
import { listOptions, oneOf, positive, positiveInteger, v } from "./index.ts";

it("lists every option with what it takes and its default, in the schema's order", () => {
  const schema = v.object({
    steps: positiveInteger,
    outer: v.optional(v.optional(positiveInteger, 5)),
    save: v.optional(v.object({ every: v.optional(positiveInteger, 5) }), {}),
    bucket: v.optional(v.union([v.literal("auto"), positiveInteger])),
    device: v.optional(v.pipe(v.string(), v.regex(/^c/), v.description("cpu or cuda")), "cpu"),
  });
  expect(listOptions(schema)).toEqual([
    { name: "steps", takes: "an integer ≥ 1", required: true, fallback: undefined, only: undefined },
    { name: "outer", takes: "an integer ≥ 1", required: false, fallback: undefined, only: undefined },
    { name: "save.every", takes: "an integer ≥ 1", required: false, fallback: 5, only: undefined },
    { name: "bucket", takes: '"auto" or an integer ≥ 1', required: false, fallback: undefined, only: undefined },
    { name: "device", takes: "cpu or cuda", required: false, fallback: "cpu", only: undefined },
  ]);
});

it("lists what all choices have in common once, and names the choice of each other option", () => {
  const lr = positive;
  const schema = v.object({
    optimizer: v.variant("name", [
      v.object({ name: v.literal("adamw"), lr, beta2: v.optional(positive, 0.999) }),
      v.object({ name: v.literal("lion"), lr, beta2: v.optional(positive, 0.99), zero: oneOf(["hold", "plus"]) }),
    ]),
  });
  expect(listOptions(schema).map(({ only, name, fallback }) => [only, name, fallback])).toEqual([
    [undefined, "optimizer.name", undefined],
    [undefined, "optimizer.lr", undefined],
    ["optimizer.name=adamw", "optimizer.beta2", 0.999],
    ["optimizer.name=lion", "optimizer.beta2", 0.99],
    ["optimizer.name=lion", "optimizer.zero", undefined],
  ]);
});

it("shows the choice that may be left out as the default", () => {
  const schema = v.object({
    schedule: v.variant("name", [
      v.object({ name: v.optional(v.literal("cosine"), "cosine"), warmup: positiveInteger }),
      v.object({ name: v.literal("constant"), warmup: positiveInteger }),
    ]),
  });
  const warmup = {
    name: "schedule.warmup",
    takes: "an integer ≥ 1",
    required: true,
    fallback: undefined,
    only: undefined,
  };
  const name = {
    name: "schedule.name",
    takes: "one of cosine, constant",
    required: false,
    fallback: "cosine",
    only: undefined,
  };
  expect(listOptions(schema)).toEqual([name, warmup]);
});

it("names the outer choice of a choice within it", () => {
  const scaling = v.variant("name", [
    v.object({ name: v.optional(v.literal("none"), "none") }),
    v.object({ name: v.literal("linear"), factor: positive }),
  ]);
  const schema = v.object({
    model: v.variant("name", [
      v.object({ name: v.literal("gpt") }),
      v.object({ name: v.literal("llama"), scaling: v.optional(scaling, { name: "none" }) }),
    ]),
  });
  expect(listOptions(schema).map(({ only, name }) => [only, name])).toEqual([
    [undefined, "model.name"],
    ["model.name=llama", "model.scaling.name"],
    ["model.scaling.name=linear", "model.scaling.factor"],
  ]);
});
