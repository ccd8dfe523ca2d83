import { expect, it } from "vitest";
import { dropUntaken } from "./drop-untaken.ts";
import { flag, positive, v } from "./index.ts";

const either = v.variant("name", [
  v.object({ name: v.literal("sgd"), lr: positive, momentum: v.optional(positive), size: v.optional(positive) }),
  v.object({ name: v.optional(v.literal("lion"), () => "lion" as const), lr: positive, size: v.optional(flag) }),
]);
const schema = v.object({
  steps: positive,
  optimizer: either,
  groups: v.optional(v.array(either)),
  exchange: v.optional(v.object({ gradient: v.optional(either) })),
});
const sgd = { name: "sgd", lr: 1, momentum: 0.9, size: 3 };

it("drops the options of a group that chooses another entry, which takes them not at all or with other values", () => {
  const before = { steps: 1, optimizer: sgd };
  const after = { steps: 2, optimizer: { ...sgd, name: "lion" } };
  const copies = structuredClone([before, after]);
  const { tree, dropped } = dropUntaken(schema, { before, after, given: ["optimizer.name"] });
  expect(tree).toEqual({ steps: 2, optimizer: { name: "lion", lr: 1 } });
  expect(dropped).toEqual([
    { group: "optimizer", key: "name", from: "sgd", to: "lion", options: ["momentum", "size"] },
  ]);
  expect([before, after]).toEqual(copies);
});

it("does so in groups at any depth, and in lists entry by entry", () => {
  const before = { groups: [sgd, sgd], exchange: { gradient: sgd } };
  const lion = { ...sgd, name: "lion" };
  const after = {
    groups: [sgd, lion, { name: "lion", momentum: 1 }],
    exchange: { gradient: { ...lion, name: undefined } },
  };
  const { tree, dropped } = dropUntaken(schema, { before, after, given: ["groups.1.name", "groups.2"] });
  expect(tree).toEqual({
    groups: [sgd, { name: "lion", lr: 1 }, { name: "lion", momentum: 1 }],
    exchange: { gradient: { lr: 1 } },
  });
  expect(dropped.map(({ group, to }) => [group, to])).toEqual([
    ["groups.1", "lion"],
    ["exchange.gradient", "lion"],
  ]);
});

it("keeps what was given with the choice, alone or as a whole group", () => {
  const before = { optimizer: sgd };
  for (const given of [["optimizer.momentum", "optimizer.size"], ["optimizer"]]) {
    const after = { optimizer: { ...sgd, name: "lion" } };
    expect(dropUntaken(schema, { before, after, given })).toEqual({ tree: after, dropped: [] });
  }
});

it("drops all options of the old entry in groups that share nothing, but for what was given", () => {
  const before = { optimizer: sgd, exchange: { gradient: sgd } };
  const lion = { ...sgd, name: "lion", size: true };
  const given = ["optimizer.name", "exchange.gradient.name", "optimizer.size", "exchange.gradient.size"];
  const after = { optimizer: lion, exchange: { gradient: lion } };
  const { tree, dropped } = dropUntaken(schema, { before, after, given, sharingNothing: ["exchange.gradient"] });
  expect(tree).toEqual({
    optimizer: { name: "lion", lr: 1, size: true },
    exchange: { gradient: { name: "lion", size: true } },
  });
  expect(dropped.map(({ options }) => options)).toEqual([["momentum"], ["lr", "momentum"]]);
});

it("keeps what the old entry refuses too, where the choice stays or is unknown, and what is no group", () => {
  const wrong = { optimizer: { ...sgd, momentum: "fast", rate: 1 } };
  const after = { optimizer: { ...wrong.optimizer, name: "lion" } };
  expect(dropUntaken(schema, { before: wrong, after, given: ["optimizer.name"] }).tree).toEqual({
    optimizer: { name: "lion", lr: 1, momentum: "fast", rate: 1 },
  });
  for (const other of [{ optimizer: { ...sgd, name: "adam" } }, { optimizer: "lion" }, { optimizer: null }])
    expect(dropUntaken(schema, { before: { optimizer: sgd }, after: other, given: [] })).toEqual({
      tree: other,
      dropped: [],
    });
});
