import { Arena, fromTypedArray, Module, noGrad, Parameter } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { demo, Optimizer } from "../index.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { layerRanges, type Oracle, optimizerContract } from "../testing/optimizer-contract.ts";
import { trajectory } from "../testing/trajectory.ts";

/** Orthonormal DCT-II, and back, from the definition. */
const cosine = (L: number, k: number, i: number) =>
  Math.sqrt((k === 0 ? 1 : 2) / L) * Math.cos((Math.PI * k * (2 * i + 1)) / (2 * L));
const dct = (x: readonly number[]) => x.map((_, k) => x.reduce((sum, v, i) => sum + v * cosine(x.length, k, i), 0));
const inverse = (X: readonly number[]) => X.map((_, i) => X.reduce((sum, v, k) => sum + v * cosine(X.length, k, i), 0));

function largest(X: readonly number[], k: number): number[] {
  const order = [...X.keys()].sort((i, j) => Math.abs(X[j]!) - Math.abs(X[i]!) || i - j);
  const kept = new Set(order.slice(0, k));
  return X.map((value, i) => (kept.has(i) ? value : 0));
}

const [chunk, k] = [33, 2]; // with which no two cosines of the gradients below are equally large

/** Algorithm 1 in float64 with β 1/2 and λ 1/4; the matrices of the contract are no squares of 33. */
function oracle(n: number, ranks: number, { over, sign }: { over: "ranks" | "senders"; sign: boolean }): Oracle {
  const m = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
  return (θ, g, { lr }) => {
    for (const [layer, [begin, end]] of layerRanges().entries()) {
      const length = layer === 1 ? chunk : chunk ** 2; // the second parameter is a vector
      for (let from = begin; from < end; from += length) {
        const to = Math.min(end, from + length);
        const sent = m.map((own, r) => {
          const grown = own.slice(from, to).map((value, i) => 0.5 * value + g[r]![from + i]!);
          const q = largest(dct(grown), k);
          for (const [i, value] of inverse(q).entries()) own[from + i] = grown[i]! - value;
          return q;
        });
        const Q = inverse(
          sent[0]!.map((_, i) => {
            const senders = over === "ranks" ? ranks : Math.max(1, sent.filter((q) => q[i] !== 0).length);
            return sent.reduce((sum, q) => sum + q[i]!, 0) / senders;
          }),
        );
        for (const [i, value] of Q.entries())
          θ[from + i] = θ[from + i]! - lr * ((sign ? Math.sign(value) : value) + 0.25 * θ[from + i]!);
      }
    }
  };
}

for (const over of ["ranks", "senders"] as const)
  optimizerContract(`demo over ${over}, without the sign`, {
    create: () => demo({ decay: 0.5, chunk, k, weightDecay: 0.25, sign: false, over }),
    oracle: (n, ranks) => oracle(n, ranks, { over, sign: false }),
    tolerance: 2e-5, // of steps up to 10
  });

class Layers extends Module {
  readonly square: Parameter;
  readonly wide: Parameter;
  readonly prime: Parameter;
  readonly vector: Parameter;

  constructor() {
    super();
    const parameter = (shape: number[], role: "matrix" | "vector") => {
      const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i * 1.7));
      return new Parameter(fromTypedArray(values, shape), { role });
    };
    this.square = parameter([8, 8], "matrix");
    this.wide = parameter([8, 24], "matrix");
    this.prime = parameter([13, 7], "matrix");
    this.vector = parameter([19], "vector");
  }
}

describe("demo", () => {
  it("keeps the replicas bit-equal for 100 steps, with squares, prime sides and vectors", async () => {
    const all = await onRanks(3, async (group) => {
      const arena = new Arena(new Layers());
      const optimizer = new Optimizer(arena, group, { algorithm: demo({ chunk: 8, k: 5 }), compareEvery: 1 });
      for (let step = 0; step < 100; step++) {
        const values = Float32Array.from({ length: arena.gradients.length }, (_, i) =>
          Math.cos(i * 3.1 + step * 1.3 + group.rank * 2.7),
        );
        for (const { offset, length } of arena.segments)
          noGrad(() =>
            arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(values.slice(offset, offset + length))),
          );
        await optimizer.step({ lr: 0.01 });
      }
      return [...((await arena.parameters.toTypedArray()) as Float32Array)];
    });
    for (const θ of all) expect(θ).toEqual(all[0]);
  });

  it("sends the largest cosines of each square of a matrix, and keeps the rest", async () => {
    const c = 2;
    const x = [5, 1, 2, -3, 4, 0.5, 1, 7]; // (2, 4): the squares [5 1; 4 0.5] and [2 -3; 1 7]
    class Matrix extends Module {
      readonly weight = new Parameter(fromTypedArray(new Float32Array(8), [2, 4]), { role: "matrix" });
    }
    const [got] = await onRanks(1, async (group) => {
      const arena = new Arena(new Matrix());
      const optimizer = new Optimizer(arena, group, { algorithm: demo({ chunk: c, k: 1, sign: false }) });
      noGrad(() => arena.gradients.narrow(0, 0, 8).copy_(fromTypedArray(Float32Array.from(x))));
      await optimizer.step({ lr: 1 });
      const { tensors } = await optimizer.state();
      const m = [...((await tensors.get("m.weight")!.toTypedArray()) as Float32Array)];
      return { θ: [...((await arena.parameters.toTypedArray()) as Float32Array)].slice(0, 8), m };
    });
    // Cosines of a square [a b; c d]: (a+b+c+d)/2, (a−b+c−d)/2, (a+b−c−d)/2, (a−b−c+d)/2. The largest are 10.5/2 of the
    // first one, the sum, and 11/2 of the second one, (2+3−1+7)/2; each decodes to a half of itself with the signs of
    // its sum.
    const sent = [2.625, 2.625, 2.75, -2.75, 2.625, 2.625, -2.75, 2.75];
    for (const [i, value] of sent.entries()) {
      expect(got!.θ[i]).toBeCloseTo(-value, 5);
      expect(got!.m[i]).toBeCloseTo(x[i]! - value, 5);
    }
  });

  it("gives the reference's numbers for one chunk", async () => {
    // Computed in float64: of [1, −2, 3, 0.5, −0.25, 4, −1, 2] the two largest cosines, those of places 0 and 6.
    const [θ] = await onRanks(1, (group) =>
      trajectory(group, demo({ chunk: 8, k: 2, sign: false }), [[1, -2, 3, 0.5, -0.25, 4, -1, 2]], {
        start: new Array(8).fill(0),
        lr: 1,
      }),
    );
    const decoded = [1.8908155, -1.4707012, 3.2832012, -0.07831556, -0.07831556, 3.2832012, -1.4707012, 1.8908155];
    for (const [i, value] of decoded.entries()) expect(θ![0]![i]).toBeCloseTo(-value, 5);
  });

  it("takes the sign of the mean, and the learning rate into the momentum, if that is asked", async () => {
    const rows = [[3, 3, 3, 3]]; // one cosine, 6
    const [signed] = await onRanks(2, (group) => trajectory(group, demo(), rows, { start: [0, 0, 0, 0], lr: 0.5 }));
    expect(signed![0]).toEqual([-0.5, -0.5, -0.5, -0.5]);
    const options = { sign: false, rateInMomentum: true };
    const [scaled] = await onRanks(2, (group) =>
      trajectory(group, demo(options), rows, { start: [0, 0, 0, 0], lr: 0.5 }),
    );
    for (const value of scaled![0]!) expect(value).toBeCloseTo(-0.5 * 0.5 * 3, 5);
  });

  it("names what it cannot send", () => {
    expect(() => demo({ chunk: 2, k: 5 })).toThrow("demo.k: a chunk of 2 × 2 has 4 cosines, and k is 5; take fewer");
    expect(() => demo({ chunk: 65 })).toThrow(/demo\.chunk/);
  });
});
