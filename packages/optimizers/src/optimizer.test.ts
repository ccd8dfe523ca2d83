import type { Group } from "@terse/collectives";
import { loopback } from "@terse/collectives";
import { StepRefusedError } from "@terse/exchange";
import { Arena, fromTypedArray, Module, noGrad, Parameter, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { compareRanks } from "./fingerprint.ts";
import { type Algorithm, adamw, lion, lionCub, Optimizer, type OptimizerOptions, RanksDifferError } from "./index.ts";

const lengths = [130, 64, 100, 40];

class Vectors extends Module {
  readonly a: Parameter = ones(lengths[0]!);
  readonly b: Parameter = ones(lengths[1]!);
  readonly c: Parameter = ones(lengths[2]!);
  readonly d: Parameter = ones(lengths[3]!);
}

function ones(length: number): Parameter {
  return new Parameter(fromTypedArray(new Float32Array(length).fill(1)), { role: "vector" });
}

/** Different algorithms by segment name; the others go to lionCub. */
const mixed = (by: Record<string, Algorithm>): OptimizerOptions => ({
  algorithm: lionCub(),
  compareEvery: 0,
  groups: Object.entries(by).map(([name, algorithm]) => ({ match: (segment) => segment.name === name, algorithm })),
});

async function onRanks<T>(
  size: number,
  options: OptimizerOptions,
  task: (arena: Arena, optimizer: Optimizer, group: Group) => Promise<T>,
) {
  const groups = loopback(size);
  try {
    return await Promise.all(
      groups.map((group) => {
        const arena = new Arena(new Vectors());
        return task(arena, new Optimizer(arena, group, options), group);
      }),
    );
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

function setGradient(arena: Arena, value: (segment: string, i: number) => number): void {
  for (const { name, offset, length } of arena.segments) {
    const values = Float32Array.from({ length }, (_, i) => value(name, i));
    noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(values)));
  }
}

const floats = async (tensor: Tensor) => [...((await tensor.toTypedArray()) as Float32Array)];

describe("algorithms side by side on one model", () => {
  it.each([Number.NaN, -1, 1e39])(
    "refuses a learning rate that no kernel can take, %d, before any message",
    async (lr) => {
      await onRanks(2, { algorithm: lionCub(), overlap: "off" }, async (_, optimizer, group) => {
        const sent = group.sent().messages;
        await expect(optimizer.step({ lr })).rejects.toThrow(/^lr: expected a number ≥ 0 as a 32-bit float, got /);
        expect(group.sent().messages).toBe(sent);
      });
    },
  );

  const groups = { b: adamw(), c: lionCub({ beta1: 0.5 }), d: lion() };

  it.each([
    ["the part that is averaged", "b", Number.NaN],
    ["the part that is voted on", "c", Number.POSITIVE_INFINITY],
  ])("refuse a step together when one rank's gradient is bad in %s", async (_, where, bad) => {
    const outcomes = await onRanks(3, mixed(groups), async (arena, optimizer, group) => {
      setGradient(arena, (name, i) => (group.rank === 1 && name === where && i === 7 ? bad : i - 20));
      const error = await optimizer.step({ lr: 0.1 }).catch((error: unknown) => error);
      return { error, θ: await floats(arena.parameters) };
    });
    for (const { error, θ } of outcomes) {
      expect(error).toBeInstanceOf(StepRefusedError);
      expect((error as Error).message).toContain("rank 1 refuses the step: the gradient is not finite");
      expect(θ.every((x) => x === 1 || x === 0)).toBe(true); // pads are 0
    }
  });

  it.each([
    ["rank 1 refuses the step: the norm of the gradient is 2^63 or more", mixed(groups)],
    ["the step is refused: the norm of the mean gradient is 2^63 or more", { algorithm: adamw() }],
  ])("say that a gradient is too large, and not that it is not finite: %s", async (message, options) => {
    const outcomes = await onRanks(3, options, async (arena, optimizer, group) => {
      setGradient(arena, (name, i) => (group.rank === 1 && name === "c" && i === 7 ? 1e30 : i - 20));
      const error = await optimizer.step({ lr: 0.1 }).catch((error: unknown) => error);
      return { error, θ: await floats(arena.parameters) };
    });
    for (const { error, θ } of outcomes) {
      expect((error as Error).message).toContain(message);
      expect(θ.every((x) => x === 1 || x === 0)).toBe(true); // pads are 0
    }
  });

  it.each([1, 2, 3, 4])("send the bytes of the joint closed form on %i ranks", async (ranks) => {
    const sent = await onRanks(ranks, mixed(groups), async (arena, optimizer, group) => {
      setGradient(arena, (_, i) => i - 20);
      const before = group.sent().bytes;
      await optimizer.step({ lr: 0.1 });
      return { got: group.sent().bytes - before, closed: optimizer.bytesSent() };
    });
    for (const { got, closed } of sent) expect(got).toBe(closed);
  });

  it.each([1, 2, 3, 5])("send the bytes of the joint closed form on %i ranks, levels among them", async (ranks) => {
    const levels = lionCub({ bits: 3 });
    const sent = await onRanks(ranks, mixed({ a: levels, c: levels, d: adamw() }), async (arena, optimizer, group) => {
      setGradient(arena, (_, i) => i - 20);
      const before = group.sent().bytes;
      await optimizer.step({ lr: 0.1 });
      return { got: group.sent().bytes - before, closed: optimizer.bytesSent() };
    });
    for (const { got, closed } of sent) expect(got).toBe(closed);
  });

  it("step by the group's share of the learning rate, also where neighbours have one algorithm", async () => {
    const algorithm = lion();
    const group = (name: string, lrFactor: number) => ({
      match: (segment: { name: string }) => segment.name === name,
      algorithm,
      lrFactor,
    });
    const options = { algorithm, groups: [group("b", 4), group("c", 0.5)] };
    const [steps] = await onRanks(2, options, async (arena, optimizer) => {
      setGradient(arena, () => 1);
      await optimizer.step({ lr: 2 ** -4 });
      const θ = await floats(arena.parameters);
      return arena.segments.map(({ name, offset }) => [name, 1 - θ[offset]!]);
    });
    expect(steps).toEqual([
      ["a", 2 ** -4],
      ["b", 2 ** -2],
      ["c", 2 ** -5],
      ["d", 2 ** -4],
    ]);
  });

  it("average the momenta that are selected together, where they differ in another option", async () => {
    const momentumSync = { segments: { match: "^[bc]$" }, every: 1 } as const;
    const create = (weightDecay: number) => lionCub({ momentumSync, weightDecay });
    const options = { ...mixed({ c: create(0), d: create(0) }), algorithm: create(0.1) };
    const momenta = await onRanks(2, options, async (arena, optimizer, group) => {
      setGradient(arena, () => 1 + group.rank);
      await optimizer.step({ lr: 0.1 });
      const { tensors } = await optimizer.state();
      return Promise.all(["b", "c", "d"].map(async (name) => (await floats(tensors.get(`m.${name}`)!))[0]!));
    });
    const [[b, c, d], other] = momenta as [number[], number[]];
    expect(other!.slice(0, 2)).toEqual([b, c]);
    expect(other![2]).not.toBe(d);
  });

  it("leave the pads between segments at zero", async () => {
    const [first] = await onRanks(2, mixed(groups), async (arena, optimizer) => {
      setGradient(arena, (_, i) => i - 20);
      for (let i = 0; i < 3; i++) await optimizer.step({ lr: 0.1 });
      const θ = await floats(arena.parameters);
      return arena.segments.map(({ offset, length }, i) =>
        θ.slice(offset + length, arena.segments[i + 1]?.offset ?? θ.length),
      );
    });
    expect(first!.map((pad) => pad.length)).toEqual([62, 0, 28, 24]);
    expect(first!.flat().every((x) => x === 0)).toBe(true);
  });
});

describe("an optimizer", () => {
  it.each([lion, adamw])("changes nothing when a finite gradient is too large to square", async (create) => {
    const outcomes = await onRanks(2, { algorithm: create() }, async (arena, optimizer) => {
      setGradient(arena, (name, i) => (name === "d" && i === 5 ? 1e25 : 1));
      const error = await optimizer.step({ lr: 0.1 }).catch((error: unknown) => error);
      return { error, θ: await floats(arena.parameters) };
    });
    for (const { error, θ } of outcomes) {
      expect(error).toBeInstanceOf(StepRefusedError);
      expect(θ.every((x) => x === 1 || x === 0)).toBe(true);
    }
  });

  it("clips the mean gradient by its norm, and a rank's own by that rank's", async () => {
    // Ranks 0, 1, 2 have the gradients 3, 6, 9 in one element and 0 elsewhere: the mean is 6.
    for (const gradient of ["mean", "own"] as const) {
      const algorithm: Algorithm = {
        name: "scaled gradient",
        splits: "anywhere",
        init: () => ({}),
        async step(_, g, __, exchange, { gradientScale }) {
          const scale = gradient === "mean" ? await exchange.meanGradient(g) : gradientScale;
          await exchange.agreed();
          noGrad(() => g.mul_(scale));
        },
        messages: () => (gradient === "mean" ? [{ kind: "meanGradient" }] : []),
      };
      const seen = await onRanks(3, { algorithm, clip: 2 }, async (arena, optimizer, group) => {
        setGradient(arena, (name, i) => (name === "b" && i === 0 ? 3 * (group.rank + 1) : 0));
        const { gradientNorm } = await optimizer.step({ lr: 0.1 });
        const clipped = Math.max(...(await floats(arena.gradients)));
        return { gradientNorm, clipped };
      });
      expect(seen.map(({ gradientNorm }) => gradientNorm)).toEqual(gradient === "mean" ? [6, 6, 6] : [3, 6, 9]);
      for (const { clipped } of seen) expect(clipped).toBeCloseTo(2, 6);
    }
  });

  it("names, on every rank, the ranks whose parameters differ", async () => {
    const outcomes = await onRanks(4, { algorithm: lionCub(), compareEvery: 2 }, async (arena, optimizer, group) => {
      setGradient(arena, () => 1);
      await optimizer.step({ lr: 0.1 });
      if (group.rank === 2) noGrad(() => arena.parameters.narrow(0, 3, 1).mul_(-1));
      return optimizer.step({ lr: 0.1 }).catch((error: unknown) => error);
    });
    for (const error of outcomes) {
      expect(error).toBeInstanceOf(RanksDifferError);
      expect((error as Error).message).toContain("after 2 steps rank 2 holds other parameters than rank 0");
    }
  });

  it("says of ranks with other learning rates what must be the same", async () => {
    const outcomes = await onRanks(2, { algorithm: lionCub(), compareEvery: 1 }, async (arena, optimizer, group) => {
      setGradient(arena, () => 1);
      return optimizer.step({ lr: 0.1 * (1 + group.rank) }).catch((error: unknown) => error);
    });
    for (const error of outcomes) expect(String(error)).toContain("the same options and learning rates");
  });

  it("passes ranks with equal parameters", async () => {
    await onRanks(3, { algorithm: lionCub() }, async (arena, _, group) => compareRanks(group, arena.parameters, 0));
  });
});
