import { loopback } from "@terse/collectives";
import { carryAlone, meanErrorCompensated, openExchange, ownedElements } from "@terse/exchange";
import { fromTypedArray, noGrad, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { needsPython, python, runPython } from "../../../tensor/src/testing/python.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { noise } from "../testing/train-matrices.ts";
import type { OptimizerExchange, StepContext, Vector } from "./algorithm.ts";
import { CompensatedMomentum, type CompensationState, MomentumMean } from "./compensated-momentum.ts";
import { settle } from "./settle.ts";

const tensor = (values: readonly number[]) => fromTypedArray(Float32Array.from(values));

/** Layers of these momenta, each followed by a pad up to 64 elements. */
function layers(...momenta: number[][]): { vector: Vector; m: Tensor } {
  const segments = momenta.map((values, k) => ({ name: `${k}`, offset: 64 * k, length: values.length }));
  const lengths = momenta.flatMap(({ length }) => [length, 64 - length]);
  const vector = { n: 64 * momenta.length, offset: 0, segments, lengths, rank: 0, ranks: 1 } as unknown as Vector;
  return { vector, m: tensor(momenta.flatMap((values) => [...values, ...new Array(64 - values.length).fill(0)])) };
}

describe("momentum scaling", () => {
  const factorsOf = (...momenta: number[][]) => {
    const { vector, m } = layers(...momenta);
    const momentum = new CompensatedMomentum("momentum-scaled", 0.9);
    const state = momentum.init(m, vector);
    noGrad(() => state.elements.m.copy_(m));
    momentum.chooseFactors(state, vector);
    return state.scalars.factors;
  };

  it("brings every layer to the mean size of the layers, as Appendix A.5.2 and DeepSpeed", () => {
    const [first, second] = factorsOf([0.01, -0.02], [1, 2, -1]);
    expect(first).toBeCloseTo(45.22135955, 4);
    expect(second).toBeCloseTo(0.5055901699, 7);
  });

  it("leaves a layer whose momentum is zero as it is", () => {
    const factors = factorsOf([0, 0], [3, -3]);
    expect(factors[0]).toBe(1);
    expect(factors[1]).toBeCloseTo(0.5, 6);
  });
});

/** As a step averages it. */
async function averageOf(
  momentum: CompensatedMomentum,
  g: Tensor,
  state: CompensationState,
  variance: Tensor,
  exchange: OptimizerExchange,
  context: StepContext,
): Promise<MomentumMean> {
  using own = momentum.ofRank(g, state, variance, context);
  return momentum.ofWires(await exchange.meanOfWires(own), state, variance, context.vector);
}

describe("the momentum that is sent", () => {
  const n = 1003; // whole words of signs, and a tail
  const random = (seed: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(i * i + seed) / 7);
  const segments = [{ name: "x", offset: 0, length: n }];
  const ones = Array.from({ length: n }, () => 1);
  const someZeros = ones.map((one, i) => (i % 5 === 0 || (i > 200 && i < 300) ? 0 : one));
  const context = (vector: Vector) => ({ step: 0, lr: 1, gradientScale: 0.37, vector }) as StepContext;

  it.each([
    ["of all elements", ones],
    ["without those that have had no gradient", someZeros],
  ])("is libtorch's, and what is not sent stays in the error, %s", async (_, variance) => {
    const [g, m, error] = [tensor([...random(1)]), tensor([...random(2)]), tensor([...random(3)])] as const;
    const own = noGrad(() =>
      error
        .clone()
        .add_(m, { alpha: 0.9 })
        .add_(g, { alpha: (1 - 0.9) * 0.37 }),
    );
    const vector = { n, offset: 0, segments, lengths: [n, 0], rank: 0, ranks: 1 } as unknown as Vector;
    const momentum = new CompensatedMomentum("per-layer", 0.9);
    const state = momentum.init(m, vector);
    noGrad(() => [state.elements.m.copy_(m), state.elements.workerError.copy_(error)]);
    const [group] = loopback(1);
    const exchange = openExchange(group!) as unknown as OptimizerExchange;
    const { parts } = await averageOf(momentum, g, state, tensor(variance), exchange, context(vector));
    const [part] = parts;
    await group!.close();
    settle(state);

    // What is kept is what was to be sent, less the one magnitude with its sign: 1-bit Adam, Algorithm 1, line 8.
    const [all, kept] = await Promise.all([own, state.elements.workerError].map(floatsOf));
    const sent = [...all!].filter((_, i) => variance[i]! > 0);
    const scale = Math.fround(Math.sqrt(sent.reduce((sum, x) => sum + x * x, 0) / sent.length));
    expect(part).toMatchObject({ begin: 0, end: n });
    expect(part!.packed!.scale).toBeCloseTo(scale, 7);
    const move = (x: number, i: number) =>
      variance[i] === 0 ? 0 : x >= 0 ? part!.packed!.scale : -part!.packed!.scale;
    expect([...kept!]).toEqual([...all!].map((x, i) => Math.fround(x - move(x, i))));
    for (const [i, x] of all!.entries())
      expect((part!.packed!.signs[i >> 3]! >> (i & 7)) & 1).toBe(variance[i]! > 0 && x >= 0 ? 1 : 0);
  });

  it("is the same whether or not the state has been read between steps", async () => {
    const run = async (settles: boolean) => {
      const groups = loopback(3);
      const ends = await Promise.all(
        groups.map(async (group) => {
          const vector = { n, offset: 0, segments, lengths: [n, 0], rank: group.rank, ranks: 3 } as unknown as Vector;
          const momentum = new CompensatedMomentum("per-layer", 0.9);
          using variance = tensor(someZeros);
          using like = tensor(ones);
          const state = momentum.init(like, vector);
          const sent = [];
          for (let step = 0; step < 4; step++) {
            using g = tensor([...random(7 * group.rank + step)]);
            const exchange = openExchange(group) as unknown as OptimizerExchange;
            const { parts } = await averageOf(momentum, g, state, variance, exchange, context(vector));
            sent.push(parts.map(({ packed }) => [packed!.scale, ...packed!.signs]));
            if (settles) settle(state);
          }
          settle(state);
          return [sent, await floatsOf(state.elements.workerError), await floatsOf(state.owned.serverError.values)];
        }),
      );
      await Promise.all(groups.map((group) => group.close()));
      return ends;
    };
    expect(await run(true)).toEqual(await run(false));
  });

  it("of a layer comes in the parts of its owners", () => {
    const { vector } = layers([1, 2, 3], [4, 5]);
    const signs = Uint8Array.from({ length: 8 }, (_, i) => i);
    const part = (begin: number, scale: number) => ({
      begin,
      end: begin + 64,
      packed: { signs, scale, hold: undefined },
    });
    expect(new MomentumMean(vector, [part(0, 1), part(64, 2)]).ofLayer(1)).toEqual([
      { begin: 0, end: 2, packed: { signs: signs.subarray(0, 1), scale: 2, hold: undefined } },
    ]);
    const all = { ...vector, segments: [{ name: "x", offset: 0, length: 100 }] } as unknown as Vector;
    expect(new MomentumMean(all, [part(0, 1), part(64, 2)]).ofLayer(0)).toMatchObject([
      { begin: 0, end: 64, packed: { scale: 1 } },
      { begin: 64, end: 100, packed: { scale: 2, signs: signs.subarray(0, 5) } },
    ]);
  });
});

describe.skipIf(!python)(
  `beside DeepSpeed's compressed all-reduce, by plain collectives in PyTorch${needsPython}`,
  () => {
    const calls = 50;
    /** As DeepSpeed's own test has them: uniform, with another mean on every rank. */
    const input = (n: number, rank: number, call: number) => noise(n, rank, call).map((x) => x / 2 + 0.01 * rank);

    /** The outputs of all calls, and what is left in the end: error feedback at the ranks and at the owners. */
    async function reference(n: number, ranks: number) {
      const all = Array.from({ length: calls * ranks }, (_, i) => [...input(n, i % ranks, Math.floor(i / ranks))]);
      const outputs = await runPython(
        `
units = (${n} + 7) // 8
starts = [min(${n}, 8 * (r * units // ${ranks})) for r in range(${ranks} + 1)]
chunks = [slice(a, b) for a, b in zip(starts, starts[1:])]
def compressed(x):
    return x.norm() / x.numel() ** 0.5 * torch.where(x >= 0, 1.0, -1.0)
worker, server, visited = torch.zeros(${ranks}, ${n}, dtype=torch.float64), torch.zeros(${n}, dtype=torch.float64), []
for xs in inputs["x"].double():
    worker += xs
    sent = torch.stack([compressed(x) for x in worker])
    worker -= sent
    server += sent.mean(0)
    out = torch.cat([compressed(server[chunk]) for chunk in chunks])
    server -= out
    visited.append(out)
outputs["out"], outputs["worker"], outputs["server"] = torch.stack(visited), worker, server`,
        { x: fromTypedArray(Float32Array.from(all.flat()), [calls, ranks, n]) },
      );
      const read = async (name: string) => (await outputs[name]!.toTypedArray()) as Float64Array;
      return { out: await read("out"), worker: await read("worker"), server: await read("server") };
    }

    // Where n is no multiple of 8 P, DeepSpeed pads, and its scales shrink with the pads; here nothing is padded.
    it.each([
      [2, 1024],
      [2, 1003],
      [4, 1024],
      [4, 999],
    ])("gives its outputs to 1e-6 in each of 50 calls, and its errors, on %i ranks, %i floats", async (ranks, n) => {
      const expected = await reference(n, ranks);
      const relative = (got: ArrayLike<number>, call: number) =>
        Math.max(...Array.from(got, (x, i) => Math.abs(x / expected.out[call * n + i]! - 1)));
      const far = (got: Float32Array, wanted: Float64Array, begin: number) =>
        Math.max(0, ...Array.from(got, (x, i) => Math.abs(x - wanted[begin + i]!)));
      const starts = Array.from({ length: ranks }, (_, r) =>
        Array.from({ length: r }, (_, k) => ownedElements(n, ranks, k)).reduce((a, b) => a + b, 0),
      );
      await onRanks(ranks, async (group) => {
        const { rank } = group;
        const [workerError, serverError] = [new Float32Array(n), new Float32Array(ownedElements(n, ranks, rank))];
        for (let call = 0; call < calls; call++) {
          const into = new Float32Array(n);
          await carryAlone(meanErrorCompensated, group, input(n, rank, call), { into, workerError, serverError });
          expect(relative(into, call), `call ${call}`).toBeLessThanOrEqual(1e-6);
        }
        expect(far(workerError, expected.worker, rank * n)).toBeLessThan(1e-5);
        expect(far(serverError, expected.server, starts[rank]!)).toBeLessThan(1e-5);
      });
      await onRanks(ranks, async (group) => {
        const vector = { n, offset: 0, segments: [{ name: "x", offset: 0, length: n }], lengths: [n, 0] };
        const context = { step: 0, lr: 1, gradientScale: 1, vector: { ...vector, rank: group.rank, ranks } };
        const momentum = new CompensatedMomentum("per-layer", 0); // of the gradient alone
        using ones = tensor(new Array(n).fill(1));
        const state = momentum.init(ones, context.vector as unknown as Vector);
        const exchange = openExchange(group) as unknown as OptimizerExchange;
        for (let call = 0; call < calls; call++) {
          using g = fromTypedArray(input(n, group.rank, call));
          const { parts } = await averageOf(momentum, g, state, ones, exchange, context as unknown as StepContext);
          const got = parts.flatMap(({ begin, end, packed }) =>
            Array.from({ length: end - begin }, (_, i) =>
              (packed!.signs[i >> 3]! >> (i & 7)) & 1 ? packed!.scale : -packed!.scale,
            ),
          );
          expect(relative(got, call), `call ${call}`).toBeLessThanOrEqual(1e-6);
        }
      });
    });
  },
);

const floatsOf = async (x: Tensor) => (await x.toTypedArray()) as Float32Array;
