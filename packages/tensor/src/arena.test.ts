import { setImmediate as nextTick } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  Arena,
  Embedding,
  Linear,
  linear,
  Module,
  manualSeed,
  memory,
  noGrad,
  ones,
  Parameter,
  RMSNorm,
  randn,
  scope,
  type Tensor,
  tensor,
} from "./index.ts";

/** Odd sizes, so that there is padding between segments. The embedding is also the output head. */
class Tied extends Module {
  readonly embedding = new Embedding(7, 5);
  readonly norm = new RMSNorm(5);
  readonly mix = new Linear(5, 5);

  forward(tokens: Tensor): Tensor {
    const x = this.mix.forward(this.norm.forward(this.embedding.forward(tokens)));
    return x.matmul(this.embedding.weight.T);
  }
}

const floats = async (x: Tensor) => (await x.toTypedArray()) as Float32Array;

function tiedWithArena() {
  manualSeed(1);
  const model = new Tied();
  return { model, arena: new Arena(model) };
}

describe("Arena", () => {
  it("lays segments out in definition order at multiples of 64, a tied parameter once", () => {
    const { arena } = tiedWithArena();
    expect(arena.segments).toEqual([
      { name: "embedding.weight", shape: [7, 5], offset: 0, length: 35, role: "embedding" },
      { name: "norm.weight", shape: [5], offset: 64, length: 5, role: "norm" },
      { name: "mix.weight", shape: [5, 5], offset: 128, length: 25, role: "matrix" },
      { name: "mix.bias", shape: [5], offset: 192, length: 5, role: "vector" },
    ]);
    expect(arena.parameters.shape).toEqual([256]);
    expect(arena.gradients.shape).toEqual([256]);
    expect(arena.parameters.pointer % 64n).toBe(0n);
    expect(arena.gradients.pointer % 64n).toBe(0n);
  });

  it("keeps the values of the parameters and makes them views of its buffer", async () => {
    manualSeed(2);
    const model = new Tied();
    const before = await Promise.all(model.parameters().map(floats));
    const arena = new Arena(model);
    const flat = await floats(arena.parameters);
    arena.segments.forEach(({ offset, length }, i) => {
      expect(flat.subarray(offset, offset + length)).toEqual(before[i]);
      expect(model.parameters()[i]!.pointer).toBe(arena.parameters.pointer + BigInt(4 * offset));
    });
    noGrad(() => arena.parameters.mul_(2));
    expect(await floats(model.mix.bias!)).toEqual(before[3]!.map((x) => 2 * x));
    expect(model.mix.weight.isLeaf && model.mix.weight.requiresGrad).toBe(true);
  });

  it("has every gradient after backward, adds a second one in place, and leaves the padding 0", () =>
    scope(async () => {
      const { model, arena } = tiedWithArena();
      manualSeed(1);
      const apart = new Tied(); // the same weights, without an arena
      const tokens = tensor([1, 6, 1, 0], { dtype: "i64" });

      for (const factor of [1, 3]) {
        await model.forward(tokens).square().sum().mul(factor).backward();
        await apart.forward(tokens).square().sum().mul(factor).backward();
        const flat = await floats(arena.gradients);
        const isUsed = new Uint8Array(flat.length);
        for (const [i, { offset, length }] of arena.segments.entries()) {
          const expected = await floats(apart.parameters()[i]!.grad!);
          expect(Math.hypot(...expected)).toBeGreaterThan(0);
          expect(flat.subarray(offset, offset + length), arena.segments[i]!.name).toEqual(expected);
          expect(model.parameters()[i]!.grad!.pointer).toBe(arena.gradients.pointer + BigInt(4 * offset));
          isUsed.fill(1, offset, offset + length);
        }
        expect(flat.filter((_, i) => !isUsed[i]).every((x) => x === 0)).toBe(true);
      }

      arena.zeroGradients();
      expect(model.mix.weight.grad!.norm().item()).toBe(0);
    }));

  it("replaces every gradient in the next backward, with 0 where it does not reach, and adds those after it", () =>
    scope(async () => {
      const { model, arena } = tiedWithArena();
      manualSeed(1);
      const apart = new Tied();
      const tokens = tensor([1, 6, 1, 0], { dtype: "i64" });
      // One that reaches all parameters, and one that reaches the embedding and the norm alone
      const whole = (of: Tied) => of.forward(tokens).square().sum();
      const part = (of: Tied) => of.norm.forward(of.embedding.forward(tokens)).square().sum();
      const check = async () => {
        for (const [i, leaf] of model.parameters().entries()) {
          const { name, offset } = arena.segments[i]!;
          const expected = apart.parameters()[i]!.grad;
          expect(await floats(leaf.grad!), name).toEqual(
            expected ? await floats(expected) : new Float32Array(leaf.length),
          );
          expect(leaf.grad!.pointer, name).toBe(arena.gradients.pointer + BigInt(4 * offset));
        }
      };
      const reported: number[] = [];
      const stop = arena.onGradientReady((segment) => reported.push(segment));
      for (const loss of [whole, part, whole]) {
        arena.replaceGradients();
        arena.replaceGradients(); // a step that ended before its backward
        expect(model.mix.weight.grad).toBeNull();
        for (const leaf of apart.parameters()) leaf.grad = null;
        await loss(model).backward();
        await loss(apart).backward();
        await check();
        await part(model).backward();
        await part(apart).backward();
        await check();
      }
      expect(reported).toHaveLength(4 + 2 + 2 + 2 + 4 + 2);
      stop();
      arena.replaceGradients();
      await whole(model).backward();
      for (const leaf of apart.parameters()) leaf.grad = null;
      await whole(apart).backward();
      await check();
    }));

  it("replaces the gradient of a matrix that several products use, and of one that a sum uses too", () =>
    scope(async () => {
      manualSeed(2);
      const layer = new Linear(3, 3);
      const apart = new Linear(3, 3);
      noGrad(() => {
        for (const [i, p] of apart.parameters().entries()) p.copy_(layer.parameters()[i]!);
      });
      const arena = new Arena(layer);
      const x = randn([2, 5, 3]);
      const losses = [
        ({ weight, bias }: Linear) =>
          linear(linear(linear(x, weight, bias), weight), weight)
            .square()
            .sum(),
        ({ weight }: Linear) => linear(x, weight).sum().add(weight.square().sum()),
        ({ weight }: Linear) => weight.sum().add(linear(linear(x, weight), weight).sum()),
      ];
      for (const loss of losses) {
        arena.replaceGradients();
        await loss(layer).backward();
        for (const leaf of apart.parameters()) leaf.grad = null;
        await loss(apart).backward();
        expect(await floats(layer.weight.grad!)).toEqual(await floats(apart.weight.grad!));
        expect(layer.weight.grad!.pointer).toBe(arena.gradients.pointer);
      }
    }));

  it("has gradients of 0 after a backward that failed before it reached them", () =>
    scope(async () => {
      const { model, arena } = tiedWithArena();
      const loss = model
        .forward(tensor([1], { dtype: "i64" }))
        .square()
        .sum();
      await loss.backward();
      expect(model.mix.weight.grad!.norm().item()).toBeGreaterThan(0);
      arena.replaceGradients();
      await expect(loss.backward()).rejects.toThrow(/second time/);
      expect(await floats(arena.gradients)).toEqual(new Float32Array(arena.gradients.length));
    }));

  it("keeps gradients that existed before", () =>
    scope(async () => {
      const layer = new Linear(2, 1, { bias: false });
      await layer
        .forward(tensor([[3, 4]]))
        .sum()
        .backward();
      const arena = new Arena(layer);
      expect([...(await floats(arena.gradients)).subarray(0, 2)]).toEqual([3, 4]);
    }));

  it("refuses to replace a gradient, because optimizers would not see the new one", () =>
    scope(() => {
      const { model, arena } = tiedWithArena();
      const { weight } = model.mix;
      const { pointer } = weight.grad!;
      expect(() => {
        weight.grad = null;
      }).toThrow(/part of an arena and cannot be replaced; call arena\.zeroGradients/);
      expect(weight.grad!.pointer).toBe(pointer);
      arena.zeroGradients();
      const apart = new Tied();
      apart.mix.weight.grad = ones([5, 5]);
      apart.mix.weight.grad = null;
      expect(apart.mix.weight.grad).toBeNull();
    }));

  it("reports each segment whose gradient is complete, once, before backward has ended", () =>
    scope(async () => {
      const { model, arena } = tiedWithArena();
      const tokens = tensor([1, 2], { dtype: "i64" });
      const events: (number | "over")[] = [];
      const stop = arena.onGradientReady((segment) => events.push(segment));
      await model
        .forward(tokens)
        .sum()
        .backward()
        .then(() => events.push("over"));
      expect(events.at(-1)).toBe("over");
      expect([...events.slice(0, -1)].sort()).toEqual([0, 1, 2, 3]);
      // The first operator uses the tied embedding, so its gradient is complete last.
      expect(events.at(-2)).toBe(0);

      stop();
      stop();
      const count = events.length;
      await model.forward(tokens).sum().backward();
      await nextTick();
      expect(events).toHaveLength(count);
    }));

  it("calls every callback, and goes on with those that are not removed", () =>
    scope(async () => {
      const { model, arena } = tiedWithArena();
      const counts = [0, 0];
      const stops = counts.map((_, i) => arena.onGradientReady(() => counts[i]!++));
      const run = () =>
        model
          .forward(tensor([0], { dtype: "i64" }))
          .sum()
          .backward();
      await run();
      stops[0]!();
      await run();
      expect(counts).toEqual([4, 8]);
      stops[1]!();
    }));

  it("has no segment for frozen parameters", () => {
    const model = new Tied();
    model.mix.requiresGrad_(false);
    expect(new Arena(model).segments.map(({ name }) => name)).toEqual(["embedding.weight", "norm.weight"]);
  });

  it("refuses parameters that cannot be in one f32 buffer, by name", () => {
    expect(() => new Arena(new Tied().requiresGrad_(false))).toThrow(/no parameter .*; call requiresGrad_\(\)/);
    expect(() => new Arena(new Tied().to("f64"))).toThrow(
      "embedding.weight is f64 on cpu, but an arena is f32 on one device, here cpu; move the module with to() first",
    );
    const { model } = tiedWithArena();
    expect(() => new Arena(model)).toThrow(/embedding\.weight is in another arena already; make one arena/);
    expect(() => model.to("f64")).toThrow(/embedding\.weight is in an arena, .*; call to\(\) before the arena is made/);
  });

  it("accepts parameters without dimensions and without elements", () => {
    class Odd extends Module {
      readonly scale = new Parameter(tensor(2), { role: "vector" });
      readonly none = new Parameter(ones([0, 3]), { role: "matrix" });
      readonly last = new Parameter(ones([65]), { role: "vector" });
    }
    const arena = new Arena(new Odd());
    expect(arena.segments.map(({ offset, length, shape }) => [offset, length, shape])).toEqual([
      [0, 1, []],
      [64, 0, [0, 3]],
      [64, 65, [65]],
    ]);
    expect(arena.parameters.length).toBe(192);
  });

  it("frees everything with its module", () => {
    const before = memory();
    const { model, arena } = tiedWithArena();
    expect(memory().tensors).toBeGreaterThan(before.tensors);
    model.dispose();
    arena[Symbol.dispose]();
    expect(memory()).toEqual(before);
  });
});
