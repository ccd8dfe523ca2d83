import { scaledSign } from "@terse/codecs";
import { fromTypedArray, noGrad, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { lamb, lambBasicOneBit, oneBitLamb } from "../index.ts";
import { compensatedMean, momentumFactors } from "../testing/compensated-mean.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { lambUpdate, layerRanges, mean, type Oracle, optimizerContract } from "../testing/optimizer-contract.ts";
import { trajectory } from "../testing/trajectory.ts";
import type { OptimizerExchange, Vector } from "./algorithm.ts";

const warmup = 3;
const [minFactor, maxFactor, threshold] = [0.5, 4, 0.1];
const options = { beta1: 0.5, beta2: 0.75, beta3: 0.5, eps: 2 ** -10, weightDecay: 0.25, warmup } as const;
const clip = (x: number, low: number, high: number) => Math.min(Math.max(x, low), high);

type Scale = "per-layer" | "fused" | "momentum-scaled";

/** Algorithm 1 in float64 with β₁ 1/2, β₂ 3/4, β₃ 1/2, λ 1/4 and ε 2⁻¹⁰. */
function oracle(n: number, ranks: number, { follows, scale }: { follows: boolean; scale: Scale }): Oracle {
  const zeros = () => new Array<number>(n).fill(0);
  const [v, frozen] = [zeros(), zeros()];
  let m = zeros();
  const a = layerRanges().map(() => 0);
  const r = layerRanges().map(() => 1);
  let factors = new Array<number>(n).fill(1);
  const compensated = compensatedMean(ranks, { perLayer: scale === "per-layer" });
  return (θ, g, { step, lr }) => {
    if (step < warmup) {
      for (const [i, value] of mean(g).entries()) {
        m[i] = 0.5 * m[i]! + 0.5 * value;
        v[i] = 0.75 * v[i]! + 0.25 * value ** 2;
        frozen[i] = v[i]!;
      }
      for (const [l, c] of lambUpdate(θ, m, v, { lr }).entries()) a[l] = 0.5 * a[l]! + 0.5 * c;
      return;
    }
    if (step === warmup && scale === "momentum-scaled") factors = momentumFactors(m);
    const last = m;
    m = compensated(
      g.map((own) => own.map((value, i) => factors[i]! * (0.5 * last[i]! + 0.5 * value))),
      frozen,
    ).map((value, i) => value / factors[i]!);
    for (const [l, [begin, end]] of layerRanges().entries()) {
      let most = 0;
      for (let i = begin; i < end; i++) {
        const rebuilt = (m[i]! - 0.5 * last[i]!) / 0.5;
        v[i] = 0.75 * v[i]! + 0.25 * rebuilt ** 2;
        if (frozen[i]! > 0) most = Math.max(most, (frozen[i]! + 2 ** -20) / (v[i]! + 2 ** -20));
      }
      const near = clip(most || r[l]!, (1 - threshold) * r[l]!, (1 + threshold) * r[l]!);
      if (follows) r[l] = clip(near, minFactor, maxFactor);
      for (let i = begin; i < end; i++)
        θ[i] = θ[i]! - lr * r[l]! * a[l]! * (m[i]! / (Math.sqrt(frozen[i]!) + 2 ** -10) + 0.25 * θ[i]!);
    }
  };
}

for (const scale of ["per-layer", "fused", "momentum-scaled"] as const) {
  optimizerContract(`one-bit-lamb, ${scale}`, {
    create: () => oneBitLamb({ ...options, minFactor, maxFactor, threshold, scale }),
    oracle: (n, ranks) => oracle(n, ranks, { follows: true, scale }),
  });
  optimizerContract(`lamb-basic-one-bit, ${scale}`, {
    create: () => lambBasicOneBit({ ...options, scale }),
    oracle: (n, ranks) => oracle(n, ranks, { follows: false, scale }),
  });
}

describe("one-bit-lamb", () => {
  it("is LAMB, bit for bit, in as many steps as its warm-up has, and not after them", async () => {
    const [same, total] = [4, 6];
    const of = (algorithm: () => Parameters<typeof trajectory>[1]) =>
      onRanks(2, (group) => trajectory(group, algorithm(), total));
    const plain = await of(() => lamb());
    for (const compressed of [oneBitLamb, lambBasicOneBit]) {
      const visited = await of(() => compressed({ warmup: same }));
      for (const [r, steps] of visited.entries())
        for (const [t, θ] of steps.entries())
          if (t < same) expect(θ, `step ${t}`).toEqual(plain[r]![t]);
          else expect(θ, `step ${t}`).not.toEqual(plain[r]![t]);
    }
  });

  const tensor = (values: readonly number[]) => fromTypedArray(Float32Array.from(values));
  const values = async (x: Tensor) => [...((await x.toTypedArray()) as Float32Array)];

  /** Two compressed steps whose averaged momenta are given, from a given state. */
  async function compressed(given: Parameters<typeof oneBitLamb>[0], variances = [1e-3, 2e-3, 5e-4, 1e-3]) {
    const algorithm = oneBitLamb({ eps: 1e-8, warmup: 1, ...given });
    const segment = { name: "weight", offset: 0, length: 4, shape: [4], role: "vector" };
    const vector = { n: 4, offset: 0, segments: [segment], lengths: [4, 0], rank: 0, ranks: 1 } as unknown as Vector;
    const θ = tensor([1, -2, 0.5, 0.25]);
    const state = algorithm.init(θ, vector);
    const set = (x: Tensor, to: readonly number[]) => noGrad(() => x.copy_(tensor(to)));
    set(state.elements.m, [0.02, -0.01, 0.03, -0.04]);
    for (const variance of [state.elements.v, state.elements.frozen]) set(variance, variances);
    state.scalars.ratios = [0.2];
    const seen: { θ: number[]; v: number[]; r: number }[] = [];
    for (const m of [
      [0.025, -0.025, 0.025, -0.025],
      [0.02, -0.02, -0.02, -0.02],
    ]) {
      const wire = new Uint8Array(5);
      scaledSign().encode(wire, Float32Array.from(m), { zero: "plus" });
      const exchange = {
        meanOfWires: async () => [{ begin: 0, end: 4, wire }],
        agreed: async () => {},
      } as unknown as OptimizerExchange;
      const context = { step: seen.length + 1, lr: 0.01, gradientScale: 1, vector };
      await algorithm.step(θ, tensor([0, 0, 0, 0]), state, exchange, context);
      seen.push({ θ: await values(θ), v: await values(state.elements.v), r: state.scalars.changes[0]! });
    }
    return seen;
  }

  it("gives DeepSpeed's numbers, with its square root and its correction", async () => {
    // Computed in float64 for these momenta, variances and weights.
    const [first, second] = await compressed({ squareRoot: true, decayCorrection: true });
    for (const [i, value] of [0.0010039, 0.0020236, 0.0004999, 0.0010111].entries())
      expect(first!.v[i]).toBeCloseTo(value, 7);
    expect(first!.r).toBeCloseTo(1.0000992081560773, 6);
    expect(second!.r).toBeCloseTo(0.9982532573597409, 6);
    const expected = [
      [0.9983987028, -1.9988418514, 0.4977537102, 0.2515762947],
      [0.9971160685, -1.9979090797, 0.4995295014, 0.2528339731],
    ];
    for (const [t, { θ }] of [first!, second!].entries())
      for (const [i, value] of expected[t]!.entries()) expect(Math.abs(θ[i]! - value)).toBeLessThan(2e-7);
  });

  /** a of a layer after a warm-up of as many steps as it has gradients, from the weights that it begins with. */
  async function meanRatio(
    algorithm: typeof oneBitLamb | typeof lambBasicOneBit,
    start: readonly number[],
    gradients: readonly (readonly number[])[],
    given: Parameters<typeof lambBasicOneBit>[0] = {},
  ) {
    const warmedUp = algorithm({ beta1: 0, beta2: 0, beta3: 0.5, weightDecay: 0, warmup: gradients.length, ...given });
    const n = start.length;
    const segment = { name: "bias", offset: 0, length: n, shape: [n], role: "vector" };
    const vector = { n, offset: 0, segments: [segment], lengths: [n], rank: 0, ranks: 1 } as unknown as Vector;
    const θ = tensor(start);
    const state = warmedUp.init(θ, vector);
    const exchange = { meanGradient: async () => 1, agreed: async () => {} } as unknown as OptimizerExchange;
    for (const [step, g] of gradients.entries())
      await warmedUp.step(θ, tensor(g), state, exchange, { step, lr: 1, gradientScale: 1, vector });
    return { a: state.scalars.ratios[0]!, θ: await values(θ) };
  }

  describe.each([
    ["one-bit-lamb", oneBitLamb],
    ["lamb-basic-one-bit", lambBasicOneBit],
  ] as const)("the mean ratio of %s", (_, algorithm) => {
    const none = [0, 0];

    it("leaves out the steps in which a layer does not move, as DeepSpeed does", async () => {
      for (const start of [none, [3, -4]]) {
        expect(await meanRatio(algorithm, start, [none, none, none])).toEqual({ a: 0, θ: start });
        const late = await meanRatio(algorithm, start, [none, none, [1, -1], [1, 1]]);
        expect(late).toEqual(
          await meanRatio(algorithm, start, [
            [1, -1],
            [1, 1],
          ]),
        );
      }
    });

    it("counts the smallest ratio for a layer that begins at zero, until it has grown", async () => {
      const { a } = await meanRatio(algorithm, none, [[1, -1]]);
      expect(a).toBe(0.5 * 0.01);
    });

    it("is never above maxRatio, whichever steps have gradients", async () => {
      for (let moves = 0; moves < 2 ** 4; moves++)
        for (const start of [none, [3, -4]]) {
          const gradients = [0, 1, 2, 3].map((t) => ((moves >> t) & 1 ? [1, -1] : none));
          const { a } = await meanRatio(algorithm, start, gradients, { maxRatio: 0.02 });
          expect(a, `steps ${moves.toString(2)}`).toBeLessThanOrEqual(0.02);
        }
    });
  });

  it("takes the ratio of the variances themselves, as the paper prints it", async () => {
    const [first, second] = await compressed({});
    // Computed in float64, without ε, which is 1e-8 beside variances of 5e-4 and more.
    expect(first!.r).toBeCloseTo(1.000200040008, 6);
    expect(second!.r).toBeCloseTo(0.9964912546, 6);
  });

  it("lets a layer's ratio change by no more than the threshold in a step, and keeps it in its bounds", async () => {
    const [first, second] = await compressed({ threshold: 1e-4 });
    expect(first!.r).toBeCloseTo(1.0001, 7);
    expect(second!.r).toBeCloseTo(1.0001 * 0.9999, 7);
    const [idle] = await compressed({}, [0, 0, 0, 0]); // it had no gradient before
    expect(idle!.r).toBe(1);
    const [bounded] = await compressed({ minFactor: 1.5, maxFactor: 2 });
    expect(bounded!.r).toBe(1.5);
  });
});
