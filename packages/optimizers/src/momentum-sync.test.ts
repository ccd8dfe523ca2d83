import { type Group, loopback } from "@terse/collectives";
import { Arena, fromTypedArray, Module, noGrad, Parameter } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { type Algorithm, distributedLion, lionCub, Optimizer, type OptimizerOptions } from "./index.ts";
import { onRanks } from "./testing/on-ranks.ts";
import { optimizerContract, votingOracle } from "./testing/optimizer-contract.ts";
import { savesOf, stored } from "./testing/stored.ts";

const sizes = { embedding: 40, norm: 70, head: 33, "block.weight": 66, "block.bias": 6 };
const n = Object.values(sizes).reduce((a, b) => a + b, 0);

const filled = (length: number, shape: readonly number[]) =>
  fromTypedArray(
    Float32Array.from({ length }, (_, i) => ((i * 29) % 17) / 16 - 0.5),
    shape,
  );

class Layer extends Module {
  readonly weight: Parameter;
  readonly bias: Parameter;
  constructor() {
    super();
    this.weight = new Parameter(filled(66, [6, 11]), { role: "matrix" });
    this.bias = new Parameter(filled(6, [6]), { role: "vector" });
  }
}

class Model extends Module {
  readonly embedding: Parameter = new Parameter(filled(40, [10, 4]), { role: "embedding" });
  readonly block: Layer = new Layer();
  readonly norm: Parameter = new Parameter(filled(70, [70]), { role: "norm" });
  readonly head: Parameter = new Parameter(filled(33, [11, 3]), { role: "head" });
}

/** A model of which no part says that it is the first or the last. */
class Plain extends Module {
  readonly first: Layer = new Layer();
  readonly second: Layer = new Layer();
  readonly norm: Parameter = new Parameter(filled(70, [70]), { role: "norm" });
}

/** Small multiples of 840, which 1 to 8 ranks share exactly. */
const gradient = (rank: number, step: number, i: number) =>
  840 * (((i * 7 + rank * 11 + step * 5 + ((i * rank) % 3)) % 9) - 4);

function open(
  group: Group,
  algorithm: Algorithm,
  model: Module = new Model(),
  options: Partial<OptimizerOptions> = {},
) {
  const arena = new Arena(model);
  return { arena, optimizer: new Optimizer(arena, group, { algorithm, compareEvery: 1, ...options }) };
}

async function advance({ arena, optimizer }: ReturnType<typeof open>, rank: number, steps: number) {
  const reports = [];
  for (let k = 0; k < steps; k++) {
    let at = 0;
    for (const { offset, length } of arena.segments) {
      const values = Float32Array.from({ length }, (_, i) => gradient(rank, optimizer.steps, at + i));
      noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(values)));
      at += length;
    }
    reports.push(await optimizer.step({ lr: 2 ** -6 }));
  }
  return reports;
}

/** Parameters and momenta by segment. */
async function values({ arena, optimizer }: ReturnType<typeof open>) {
  const flat = [...((await arena.parameters.toTypedArray()) as Float32Array)];
  const m: Record<string, number[]> = {};
  for (const [name, tensor] of (await optimizer.state()).tensors)
    m[name.slice(2)] = [...((await tensor.toTypedArray()) as Float32Array)];
  return { θ: arena.segments.flatMap(({ offset, length }) => flat.slice(offset, offset + length)), m };
}

const betas = { beta1: 0.5, beta2: 0.75, weightDecay: 0.25 } as const;

/**
 * Algorithm 1 of the paper in float64, β₁ 1/2, β₂ 3/4, λ 1/4, with the momenta of [from, to) averaged every k steps.
 */
function oracle(ranks: number, steps: number, [from, to]: readonly number[], every: number, late: boolean) {
  const θ = Object.values(sizes).flatMap((length) => Array.from({ length }, (_, i) => ((i * 29) % 17) / 16 - 0.5));
  const m = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
  let begun: { before: number[][]; mean: number[] } | undefined;
  for (let step = 0; step < steps; step++) {
    const alternate = step % 2 === 0 ? 1 : -1;
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let r = 0; r < ranks; r++) {
        const g = gradient(r, step, i);
        sum += Math.sign(0.5 * m[r]![i]! + 0.5 * g) || alternate;
        m[r]![i] = 0.75 * m[r]![i]! + 0.25 * g;
      }
      θ[i] = θ[i]! - 2 ** -6 * ((Math.sign(sum) || alternate) + 0.25 * θ[i]!);
    }
    for (let i = from!; begun && i < to!; i++)
      for (let r = 0; r < ranks; r++) m[r]![i] = m[r]![i]! + (begun.mean[i]! - begun.before[r]![i]!);
    begun = undefined;
    if ((step + 1) % every !== 0) continue;
    const mean = m[0]!.map((_, i) => m.reduce((sum, of) => sum + of[i]!, 0) / ranks);
    if (late) begun = { before: m.map((of) => [...of]), mean };
    else for (let i = from!; i < to!; i++) for (let r = 0; r < ranks; r++) m[r]![i] = mean[i]!;
  }
  return { θ, m };
}

const worst = (got: readonly number[], expected: readonly number[]) => {
  expect(got.length).toBe(expected.length);
  return Math.max(...got.map((v, i) => Math.abs(v - expected[i]!)));
};

optimizerContract("lion-cub whose momenta are averaged in every step", {
  create: () => lionCub({ ...betas, momentumSync: { segments: "all", every: 1 } }),
  oracle: (n, ranks) => {
    const m = new Array<number>(n).fill(0);
    return (θ, g, { step, lr }) => {
      const alternate = step % 2 === 0 ? 1 : -1;
      for (let i = 0; i < n; i++) {
        let [sum, mean] = [0, 0];
        for (let r = 0; r < ranks; r++) {
          sum += Math.sign(0.5 * m[i]! + 0.5 * g[r]![i]!) || alternate;
          mean += g[r]![i]! / ranks;
        }
        m[i] = 0.75 * m[i]! + 0.25 * mean;
        θ[i] = θ[i]! - lr * ((Math.sign(sum) || alternate) + 0.25 * θ[i]!);
      }
    };
  },
});

optimizerContract("distributed-lion whose momenta are never averaged, said so", {
  create: () => distributedLion({ ...betas, momentumSync: { segments: "none", every: 1 } }),
  oracle: votingOracle((sum) => Math.sign(sum)),
});

describe("momentum synchronisation", () => {
  it.each([1, 2, 3, 4, 8])(
    "is the mean of the momenta, written in float64, at once and late, on %i ranks",
    async (ranks) => {
      for (const late of [false, true])
        for (const [segments, range] of [
          ["all", [0, n]],
          [{ role: "norm" }, [40, 110]],
          [{ match: "^block" }, [143, 215]],
        ] as const)
          for (const every of [1, 2, 3]) {
            const steps = 7;
            const expected = oracle(ranks, steps, range, every, late);
            const got = await onRanks(ranks, async (group) => {
              const ours = open(group, lionCub({ ...betas, momentumSync: { segments, every, late } }));
              await advance(ours, group.rank, steps);
              const seen = await values(ours);
              await ours.optimizer[Symbol.asyncDispose]();
              return seen;
            });
            for (const [rank, { θ, m }] of got.entries()) {
              expect(worst(θ, expected.θ)).toBeLessThan(1e-5);
              expect(worst(Object.values(m).flat(), expected.m[rank]!)).toBeLessThan(1e-3); // of values up to 3360
            }
          }
    },
  );

  it("leaves the same momenta on every rank, bit for bit, where they were averaged, and nowhere else", async () => {
    const cases = [
      { segments: "all", same: Object.keys(sizes) },
      { segments: "none", same: [] },
      { segments: "first-and-last", same: ["embedding", "head"] },
      { segments: { role: "vector" }, same: ["block.bias"] },
      { segments: { match: "e" }, same: ["embedding", "block.weight", "head"] },
      { segments: { match: "^norm$" }, same: ["norm"] },
    ] as const;
    for (const ranks of [2, 3])
      for (const create of [lionCub, distributedLion])
        for (const { segments, same } of cases) {
          const got = await onRanks(ranks, async (group) => {
            const ours = open(group, create({ momentumSync: { segments, every: 3 } }));
            await advance(ours, group.rank, 2);
            const before = await values(ours);
            await advance(ours, group.rank, 1);
            return { before, after: await values(ours) };
          });
          for (const name of Object.keys(sizes)) {
            expect(got[1]!.before.m[name], name).not.toEqual(got[0]!.before.m[name]);
            const equal = JSON.stringify(got[1]!.after.m[name]) === JSON.stringify(got[0]!.after.m[name]);
            expect(equal, `${name} of ${JSON.stringify(segments)}`).toBe((same as readonly string[]).includes(name));
          }
        }
  });

  it("takes the first and the last module that have a matrix, with their biases, where roles do not say", async () => {
    const got = await onRanks(2, async (group) => {
      const ours = open(group, lionCub({ momentumSync: { segments: "first-and-last", every: 1 } }), new Plain());
      await advance(ours, group.rank, 1);
      return (await values(ours)).m;
    });
    const equal = Object.keys(got[0]!).filter(
      (name) => JSON.stringify(got[0]![name]) === JSON.stringify(got[1]![name]),
    );
    expect(equal).toEqual(["first.weight", "first.bias", "second.weight", "second.bias"]);
  });

  it("takes the embedding alone where it is also the head", async () => {
    class Tied extends Module {
      readonly embedding: Parameter = new Parameter(filled(40, [10, 4]), { role: "embedding" });
      readonly block: Layer = new Layer();
    }
    const got = await onRanks(2, async (group) => {
      const ours = open(group, lionCub({ momentumSync: { segments: "first-and-last", every: 1 } }), new Tied());
      await advance(ours, group.rank, 1);
      return (await values(ours)).m;
    });
    const equal = Object.keys(got[0]!).filter(
      (name) => JSON.stringify(got[0]![name]) === JSON.stringify(got[1]![name]),
    );
    expect(equal).toEqual(["embedding"]);
  });

  it.each([false, true])("gives the same bits by buckets, late %s", async (late) => {
    const run = (options: Partial<OptimizerOptions>) =>
      onRanks(3, async (group) => {
        const algorithm = lionCub({ momentumSync: { segments: "all", every: 2, late } });
        const ours = open(group, algorithm, new Model(), options);
        for (let k = 0; k < 5; k++) {
          await ours.optimizer.begin({ lr: 2 ** -6 });
          await advance(ours, group.rank, 1);
        }
        const seen = await values(ours);
        await ours.optimizer[Symbol.asyncDispose]();
        return seen;
      });
    expect(await run({ overlap: "on", bucket: 64 })).toEqual(await run({ overlap: "off" }));
  });

  it.each([false, true])("goes on from a saved state as if it had never stopped, late %s", async (late) => {
    for (const stop of [1, 2, 3, 4]) {
      const algorithm = () => lionCub({ ...betas, momentumSync: { segments: "first-and-last", every: 2, late } });
      const straight = await onRanks(3, async (group) => {
        const ours = open(group, algorithm());
        await advance(ours, group.rank, 6);
        return values(ours);
      });
      const resumed = await onRanks(3, async (group) => {
        const first = open(group, algorithm());
        await advance(first, group.rank, stop);
        const second = open(group, algorithm());
        noGrad(() => second.arena.parameters.copy_(first.arena.parameters));
        const save = await stored(first.optimizer);
        await second.optimizer.restore(first.optimizer.steps, savesOf(group.rank, group.size, save));
        await first.optimizer[Symbol.asyncDispose]();
        await advance(second, group.rank, 6 - stop);
        const seen = await values(second);
        await second.optimizer[Symbol.asyncDispose]();
        return seen;
      });
      expect(resumed).toEqual(straight);
    }
  });

  it.each([false, true])("sends its closed form in every step, late %s", async (late) => {
    for (const ranks of [1, 2, 3, 5])
      await onRanks(ranks, async (group) => {
        const momentumSync = { segments: { match: "^(embedding|block.weight|head)$" }, every: 3, late } as const;
        const ours = open(group, lionCub({ momentumSync }), new Model(), { compareEvery: 0 });
        const plain = open(group, lionCub(), new Model(), { compareEvery: 0 });
        const reports = await advance(ours, group.rank, 7);
        for (const [step, { bytes, messages }] of reports.entries())
          expect(bytes - 32 * messages, `step ${step}`).toBe(ours.optimizer.bytesSent(step));
        // Late, what begins in step 2 travels beside step 3, and counts there.
        const more = reports.flatMap((_, step) =>
          ours.optimizer.bytesSent(step) > plain.optimizer.bytesSent(step) ? [step] : [],
        );
        expect(more).toEqual(ranks === 1 ? [] : late ? [3, 6] : [2, 5]);
        await ours.optimizer[Symbol.asyncDispose]();
      });
  });

  it("names the layers of the model when the options select none, and the wrong option", async () => {
    const [group] = loopback(1);
    expect(() => open(group!, lionCub({ momentumSync: { segments: { match: "hedd" } } }))).toThrow(
      /lion-cub\.momentumSync\.segments: {"match":"hedd"} means no parameter of this optimizer; there is embedding \(embedding\), norm \(norm\)/,
    );
    expect(() => lionCub({ momentumSync: { segments: { match: "(" } } })).toThrow(/momentumSync.*regular expression/);
    expect(() => lionCub({ momentumSync: { every: 0 } })).toThrow(/lion-cub\.momentumSync\.every/);
    expect(() => lionCub({ momentumSync: { segments: "fist-and-last" as never } })).toThrow(/first-and-last/);
    await group!.close();
  });
});
