/** Tensors that are gone before the operation that uses them has ended. */

import { readOneScale } from "@terse/codecs";
import { type Group, loopback } from "@terse/collectives";
import { type ChunkWire, carryAlone, mean, openExchange } from "@terse/exchange";
import { call, full, memory, ones, scope, type Tensor, TensorDisposedError, zeros } from "@terse/tensor";
import { afterAll, describe, expect, it } from "vitest";
import { collectGarbage } from "../../tensor/src/testing/collect-garbage.ts";
import type { StepContext, Vector } from "./algorithms/algorithm.ts";
import { CompensatedMomentum, type Scale } from "./algorithms/compensated-momentum.ts";
import { lionVote } from "./algorithms/kernels.ts";

const n = 1000;
const groups = loopback(2) as [Group, Group];
const [a, b] = groups;
afterAll(() => Promise.all(groups.map((group) => group.close())));

/** Starts an operation in a scope, and ends the scope at once. */
function inScope(start: () => Promise<unknown>): Promise<unknown> {
  let started!: Promise<unknown>;
  scope(() => {
    started = start();
  });
  return started;
}

const isAll = (x: Tensor, value: number) => scope(() => x.eq(value).all().item() === 1);

/**
 * Takes the memory that a tensor has just given back, if it has. Returns whether nothing else writes there until
 * `ended`.
 */
async function othersAreUntouched(ended: Promise<unknown>): Promise<boolean> {
  const others = Array.from({ length: 8 }, () => zeros([n]));
  await ended;
  const untouched = others.every((other) => isAll(other, 0));
  for (const other of others) other.dispose();
  return untouched;
}

describe("an operation on a tensor", () => {
  it("keeps its memory when its scope has ended", async () => {
    const first = inScope(() => a.allReduce(ones([n])));
    const mine = full([n], 2);
    expect(await othersAreUntouched(Promise.all([first, b.allReduce(mine)]))).toBe(true);
    expect(isAll(mine, 3)).toBe(true);
  });

  it("keeps its memory when it is disposed, and frees it at the end", async () => {
    await collectGarbage();
    const before = memory().tensors;
    const x = ones([n]);
    const y = full([n], 2);
    const view = x.narrow(0, 0, n);
    const first = a.allReduce(x);
    x.dispose();
    view.dispose();
    expect(await othersAreUntouched(Promise.all([first, b.allReduce(y)]))).toBe(true);
    y.dispose();
    expect(memory().tensors).toBe(before);
  });

  it("refuses to resize it while it is under way, and not afterwards", async () => {
    const [x, y] = [ones([n]), full([n], 2)];
    const first = a.allReduce(x);
    const second = a.allReduce(x, "max");
    expect(() => call("aten::resize_", x, [4 * n])).toThrow("not resizable");
    expect(x.length).toBe(n);
    await Promise.all([first, b.allReduce(y)]);
    expect(() => call("aten::resize_", x, [4 * n])).toThrow("not resizable");
    await Promise.all([second, b.allReduce(y, "max")]);
    expect(isAll(x, 3)).toBe(true);
    call("aten::resize_", x, [4 * n]);
    expect(x.length).toBe(4 * n);
  });
});

describe("an exchange of tensors", () => {
  const exchanged = async (run: (group: Group, x: Tensor) => Promise<unknown>) => {
    const mine = full([n], 3);
    const first = inScope(() => run(a, ones([n])));
    expect(await othersAreUntouched(Promise.all([first, run(b, mine)]))).toBe(true);
    expect(isAll(mine, 2)).toBe(true);
  };

  it("keeps the memory of a mean whose tensor is gone before it is sent", () =>
    exchanged((group, x) => openExchange(group).mean(x)));

  it("keeps the memory of a scheme that waits for the exchanges before it", () =>
    exchanged((group, x) => Promise.all([openExchange(group).mean(new Float32Array(5)), carryAlone(mean, group, x)])));
});

describe.each<Scale>(["fused", "momentum-scaled"])("a %s compensated momentum whose tensors are gone", (scale) => {
  it("is sent from their memory", async () => {
    const sent = (group: Group) => {
      const [θ, g, v] = [zeros([n]), full([n], 2), ones([n])];
      const segments = [{ name: "x", shape: [n], offset: 0, length: n, role: "matrix" as const }];
      const vector = { offset: 0, n, segments, ranks: 2, rank: group.rank } as unknown as Vector;
      const momentum = new CompensatedMomentum(scale, 0.9);
      const own = momentum.ofRank(g, momentum.init(θ, vector), v, { gradientScale: 1, vector } as StepContext);
      return openExchange(group)
        .meanOfWires(own)
        .finally(() => own[Symbol.dispose]());
    };
    await collectGarbage();
    const before = memory().bytes;
    const both = groups.map((group) => inScope(() => sent(group)));
    expect(await othersAreUntouched(Promise.all(both))).toBe(true);
    for (const wires of (await Promise.all(both)) as ChunkWire[][])
      for (const { wire } of wires) expect(readOneScale(wire).scale).toBeCloseTo(0.2, 6); // 0.9 · 0 + 0.1 · 2
    await collectGarbage();
    expect(memory().bytes).toBe(before);
  });
});

it("signs of a momentum that is disposed before they are encoded are an error, and no read of freed memory", () => {
  const [m, g] = [zeros([64]), ones([64])];
  const u = lionVote(m, g, { beta1: 0.9, beta2: 0.99, zero: "plus", gradientScale: 1 });
  m.dispose();
  expect(() => u.fill()).toThrow(TensorDisposedError);
});
