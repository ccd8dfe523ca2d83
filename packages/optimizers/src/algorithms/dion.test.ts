import { Arena, fromTypedArray, Linear, noGrad, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { addLowRank, inDoubles, normalizeColumns } from "../../../../native/optimizers/src/testing/definition.ts";
import { needsPython, python, runPython } from "../../../tensor/src/testing/python.ts";
import { type Algorithm, dion, Optimizer } from "../index.ts";
import { centralisedDion } from "../testing/centralised-dion.ts";
import {
  added,
  gramSchmidt,
  largestDifference,
  type Matrix,
  matrix,
  meanOf,
  normOf,
  product,
  rowsOf,
  transposed,
  unitColumns,
} from "../testing/matrices.ts";
import { momentumDrift } from "../testing/momentum-drift.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { layerRanges, matrixShapes, type Oracle, optimizerContract } from "../testing/optimizer-contract.ts";
import { type Gradients, noise, type Shape, trainMatrices } from "../testing/train-matrices.ts";
import { randomFloats } from "./random-floats.ts";

/** Algorithm 1 on the mean gradient, with μ 1/2 and λ 1/4; without error feedback as §4.1 has it. */
function oracle(
  rank: (smaller: number) => number,
  of: Readonly<Record<string, readonly number[]>>,
  { errorFeedback = true }: { errorFeedback?: boolean } = {},
): Oracle {
  const shapes = Object.values(of) as unknown as [number, number][];
  let offset = 0; // of a layer in the arena
  const states = shapes.map(([m, n]) => {
    const r = rank(Math.min(m, n));
    const Q = rowsOf(randomFloats(n * r, { seed: 0, stream: offset }), [n, r]);
    offset += 64 * Math.ceil((m * n) / 64);
    return { M: rowsOf(new Float64Array(m * n), [m, n]), Q };
  });
  return (θ, g, { lr }) => {
    for (const [k, [begin]] of layerRanges(shapes.map(([m, n]) => m * n)).entries()) {
      const [m, n] = shapes[k]!;
      const state = states[k]!;
      const kept = errorFeedback ? state.M : state.M.map((row) => row.map((x) => x / 2));
      const B = added(kept, meanOf(g.map((of) => rowsOf(of, [m, n], begin))));
      const P = gramSchmidt(product(B, state.Q));
      const R = product(transposed(B), P);
      state.M = errorFeedback ? added(B, product(P, transposed(R)), -0.5) : B;
      state.Q = unitColumns(R);
      const update: Matrix = product(P, transposed(state.Q));
      for (let i = 0; i < m * n; i++)
        θ[begin + i] = (1 - lr * 0.25) * θ[begin + i]! - lr * Math.sqrt(m / n) * update[Math.floor(i / n)]![i % n]!;
    }
  };
}

optimizerContract("dion of rank 2", {
  create: () => dion({ momentum: 0.5, weightDecay: 0.25, rank: 2 }),
  oracle: () => oracle(() => 2, matrixShapes),
});

optimizerContract("dion without error feedback", {
  create: () => dion({ momentum: 0.5, weightDecay: 0.25, rank: 2, errorFeedback: false }),
  oracle: () => oracle(() => 2, matrixShapes, { errorFeedback: false }),
});

optimizerContract("dion with each rank's own error feedback", {
  create: () => dion({ momentum: 0.5, weightDecay: 0.25, rank: 2, errorFeedback: "own" }),
  oracle: () => oracle(() => 2, matrixShapes), // whose mean is the same
});

const withTall = { ...matrixShapes, second: [130, 5] }; // with less than 128 rows Cholesky-QR is Householder's
optimizerContract("dion of a fraction of the rank, by Cholesky-QR", {
  create: () => dion({ momentum: 0.5, weightDecay: 0.25, rank: 0.3, orthonormalize: "cholesky-qr" }),
  oracle: () => oracle((smaller) => Math.ceil(0.3 * smaller), withTall),
  shapes: withTall,
});

/**
 * The messages and updates of dion.ts among ranks in fp64, by the definitions of its kernels. Kernels, arenas and
 * messages are fp32, so `dion` itself is held to the bounds of fp32.
 */
function dionInDoubles(
  [m, n]: Shape,
  {
    Q: first,
    ranks,
    gradients,
    layer,
    start,
    steps,
    lr,
    μ = 0.95,
    λ = 0,
    errorFeedback,
  }: {
    Q: Matrix;
    ranks: number;
    gradients: Gradients;
    layer: number;
    start: Matrix;
    steps: number;
    lr: number;
    μ?: number;
    λ?: number;
    errorFeedback: true | "own";
  },
): Matrix[] {
  const rank = first[0]!.length;
  const flat = (a: Matrix) => Float64Array.from(a.flat());
  const X = flat(start);
  const Q = flat(first);
  const Ms = Array.from({ length: ranks }, () => new Float64Array(m * n));
  return Array.from({ length: steps }, (_, step) => {
    const Bs = Ms.map((M, i) => added(rowsOf(M, [m, n]), rowsOf(gradients(i, step, layer), [m, n])));
    const P = gramSchmidt(meanOf(Bs.map((B) => product(B, rowsOf(Q, [n, rank])))));
    const Rs = Bs.map((B) => product(transposed(B), P));
    const R = meanOf(Rs);
    inDoubles(() => {
      for (const [i, M] of Ms.entries()) {
        M.set(flat(Bs[i]!));
        addLowRank(M, flat(P), flat(errorFeedback === "own" ? Rs[i]! : R), { rank, keep: 1, scale: μ - 1 });
      }
      const columns = flat(R);
      normalizeColumns(Q, columns, { rank, threshold: 1e-5 });
      addLowRank(X, flat(P), columns, { rank, keep: 1 - lr * λ, scale: -lr * Math.sqrt(m / n) });
    });
    return rowsOf(X, [m, n]);
  });
}

const absolute = (a: Matrix) => a.map((row) => row.map(Math.abs));

describe("dion", () => {
  // 4 × 3 and 3 × 4, r 2, μ 0.95, η 1, λ 0, X₀ = M₀ = 0; computed in float64.
  const G1: Matrix = matrix(4, 3, (i, j) => Math.sin((i + 1) * (j + 2)) + (i === j ? 0.5 : 0));
  const G2: Matrix = matrix(4, 3, (i, j) => Math.cos((i + 2) * (j + 1)) - (i === j ? 0.5 : 0));
  const tall = {
    Q: [1, 0, 0, 1, 1, -1],
    X: [
      [
        -1.2084214241, 0.0417055074, 0.7307516812, 0.2520471279, 0.1701719808, -0.422293425, 0.0311846395,
        -0.1462252018, 0.2001399245, -0.537868933, 0.2179963075, 0.0243572077,
      ],
      [
        -1.5986635659, 0.1911379827, -0.0822517238, 0.9813969324, -0.2493277093, -0.2095557946, 0.2786814172,
        -0.3468295781, -0.2705487817, -1.0142432285, 0.5748151127, 0.6572773465,
      ],
    ],
    M: [
      [
        1.3285267489, 0.1443698142, -0.708656564, -0.7412387402, 0.2318316464, 0.962166704, -0.2762899759, 0.4023578136,
        -0.0238990195, 0.9519766564, -0.5218305942, -0.2855944729,
      ],
      [
        0.3865394775, -0.4958048651, 0.2309880692, -1.6513004963, 0.6421694393, 0.0383887804, -0.8896670303,
        0.2297030047, 0.2944714558, 1.1647453763, -1.3137881107, -1.0068911298,
      ],
    ],
    absQ: [
      [0.9344379855, 0.6981330975, 0.2224436917, 0.1588091406, 0.2781086886, 0.6981330975],
      [0.8097789996, 0.2712533266, 0.5202203597, 0.0614381801, 0.2713461668, 0.9605451342],
    ],
  };
  const wideX2 = [
    -0.8247220147, 0.6966575454, 0.4816456909, -0.7989932094, -0.0100894064, -0.0142424262, -0.2801886308, 0.6968280806,
    0.0916065031, -0.3563726032, 0.246005921, 0.4533228398,
  ];
  const golden = { momentum: 0.95, rank: 2, weightDecay: 0 } as const;
  /** The gradients of the reference, and what two ranks make of them: G + D and G − D. */
  const goldenGradients =
    (ranks: number, turned = false): Gradients =>
    (rank, step) => {
      const apart = ranks === 1 ? 0 : rank === 0 ? 0.3 : -0.3;
      const G = added(
        step === 0 ? G1 : G2,
        matrix(4, 3, (i, j) => Math.cos(3 * i - j)),
        apart,
      );
      return (turned ? transposed(G) : G).flat();
    };
  const zero = (_: number, n: number) => new Float32Array(n);

  it.each([1, 2])("gives the reference's numbers, on %i ranks", async (ranks) => {
    for (const feedback of [true, "own"] as const)
      for (const visited of await trainMatrices(
        ranks,
        () => dion({ ...golden, errorFeedback: feedback }),
        [[4, 3]],
        goldenGradients(ranks),
        { steps: 2, lr: 1, start: zero, replace: { "Q.layers.0.weight": Float32Array.from(tall.Q) } },
      ))
        for (const [t, { X, state }] of visited.entries()) {
          expect(largestDifference(X[0]!, rowsOf(tall.X[t]!, [4, 3]))).toBeLessThan(1e-6);
          expect(
            largestDifference(absolute(rowsOf(state.get("Q.layers.0.weight")!, [3, 2])), rowsOf(tall.absQ[t]!, [3, 2])),
          ).toBeLessThan(1e-6);
          if (ranks === 1)
            expect(
              largestDifference(rowsOf(state.get("M.layers.0.weight")!, [4, 3]), rowsOf(tall.M[t]!, [4, 3])),
            ).toBeLessThan(1e-6);
        }
  });

  it("takes P on the rows of a wide matrix, or on its longer side, as `orientation` says", async () => {
    const run = (orientation: "rows" | "longer", Q: number[]) =>
      trainMatrices(2, () => dion({ ...golden, orientation }), [[3, 4]], goldenGradients(2, true), {
        steps: 2,
        lr: 1,
        start: zero,
        replace: { "Q.layers.0.weight": Float32Array.from(Q) },
      });
    const [rows] = await run("rows", [...tall.Q, 0.5, 0.25]);
    expect(largestDifference(rows![1]!.X[0]!, rowsOf(wideX2, [3, 4]))).toBeLessThan(1e-6);
    const [longer] = await run("longer", tall.Q);
    // The transpose of the tall one, with √(3/4) in place of √(4/3).
    const expected = rowsOf(
      tall.X[1]!.map((x) => 0.75 * x),
      [4, 3],
    );
    expect(largestDifference(transposed(longer![1]!.X[0]!), expected)).toBeLessThan(1e-6);
  });

  const shapes = [
    [16, 8],
    [8, 16],
    [8, 8],
  ] as const;
  /** Other ones on each rank and in each step; their means are well conditioned, with singular values apart. */
  const own: Gradients = (rank, step, layer) => {
    const [m, n] = shapes[layer]!;
    const singular = (k: number) => 4 - (3 * k) / Math.min(m, n);
    return noise(m * n, rank, step, layer).map((x, i) => x / 2 + (Math.floor(i / n) === i % n ? singular(i % n) : 0));
  };

  it.each([
    [1, 1],
    [1, 0.25],
    [1, "full"],
    [2, 1],
    [2, 0.25],
    [2, "full"],
    [4, 1],
    [4, 0.25],
    [4, "full"],
  ] as const)(
    "is centralised Dion on the mean gradient, on %i ranks with rank %s: Theorem 2.1",
    async (ranks, rank) => {
      const [steps, lr] = [50, 0.01];
      const all = await trainMatrices(ranks, () => dion({ rank, weightDecay: 0.1 }), shapes, own, { steps, lr });
      for (const visited of all) expect(visited.at(-1)!.X).toEqual(all[0]!.at(-1)!.X); // bit for bit
      for (const [layer, [m, n]] of shapes.entries()) {
        const smaller = Math.min(m, n);
        const r = rank === "full" ? smaller : rank < 1 ? rank * smaller : rank;
        const offset = shapes.slice(0, layer).reduce((sum, [rows, columns]) => sum + rows * columns, 0);
        const expected = centralisedDion([m, n], {
          Q: rowsOf(randomFloats(n * r, { seed: 0, stream: offset }), [n, r]),
          gradient: (step) => meanOf(Array.from({ length: ranks }, (_, i) => rowsOf(own(i, step, layer), [m, n]))),
          start: rowsOf(noise(m * n, 77, layer), [m, n]),
          ...{ steps, lr, λ: 0.1 },
        });
        const worst = all[0]!.map(({ X }, t) => largestDifference(X[layer]!, expected[t]!.X));
        expect(Math.max(...worst), `${m} × ${n}`).toBeLessThan(2e-6);
        const momenta = all.map((visited) => rowsOf(visited.at(-1)!.state.get(`M.layers.${layer}.weight`)!, [m, n]));
        expect(largestDifference(meanOf(momenta), expected.at(-1)!.M)).toBeLessThan(2e-5 * normOf(expected.at(-1)!.M));
        for (const visited of all) // Q drifts by no bit
          expect(visited.at(-1)!.state.get(`Q.layers.${layer}.weight`)).toEqual(
            all[0]!.at(-1)!.state.get(`Q.layers.${layer}.weight`),
          );
      }
    },
  );

  it("is centralised Dion by Cholesky-QR of 128 rows and more too, and then not with Householder's bits", async () => {
    const [steps, lr, ranks] = [20, 0.01, 2];
    const talls = [
      [160, 12],
      [128, 8],
    ] as const;
    const gradients: Gradients = (rank, step, layer) => noise(talls[layer]![0] * talls[layer]![1], rank, step, layer);
    const run = async (orthonormalize: "cholesky-qr" | "householder-qr") =>
      (await trainMatrices(ranks, () => dion({ orthonormalize, weightDecay: 0 }), talls, gradients, { steps, lr }))[0]!;
    const [cholesky, householder] = [await run("cholesky-qr"), await run("householder-qr")];
    for (const [layer, [m, n]] of talls.entries()) {
      const expected = centralisedDion([m, n], {
        Q: rowsOf(randomFloats((n * n) / 4, { seed: 0, stream: layer * 160 * 12 }), [n, n / 4]),
        gradient: (step) => meanOf([0, 1].map((rank) => rowsOf(gradients(rank, step, layer), [m, n]))),
        start: rowsOf(noise(m * n, 77, layer), [m, n]),
        ...{ steps, lr },
      });
      for (const visited of [cholesky, householder])
        for (const [t, { X }] of visited.entries())
          expect(largestDifference(X[layer]!, expected[t]!.X), `${m} × ${n}, step ${t}`).toBeLessThan(2e-6);
      expect(cholesky.at(-1)!.X[layer]).not.toEqual(householder.at(-1)!.X[layer]);
    }
  });

  it.each([1, 2, 4])("is centralised Dion to 1e-10 in fp64, on %i ranks", (ranks) => {
    const [steps, lr] = [50, 0.01];
    for (const [layer, [m, n]] of shapes.entries())
      for (const r of [1, Math.min(m, n) / 4, Math.min(m, n)])
        for (const errorFeedback of [true, "own"] as const) {
          const given = {
            Q: rowsOf(randomFloats(n * r, { seed: 0, stream: layer }), [n, r]),
            start: rowsOf(noise(m * n, 77, layer), [m, n]),
            ...{ steps, lr, λ: 0.1 },
          };
          const gradient = (step: number) =>
            meanOf(Array.from({ length: ranks }, (_, i) => rowsOf(own(i, step, layer), [m, n])));
          const got = dionInDoubles([m, n], { ...given, ranks, gradients: own, layer, errorFeedback });
          const worst = centralisedDion([m, n], { ...given, gradient }).map(({ X }, t) =>
            largestDifference(got[t]!, X),
          );
          expect(Math.max(...worst), `${m} × ${n}, rank ${r}`).toBeLessThanOrEqual(1e-10);
        }
  });

  it("captures all of B with full rank, and steps by √(m/n) √r", async () => {
    const [visited] = await trainMatrices(1, () => dion({ rank: "full", weightDecay: 0 }), shapes, own, {
      steps: 6,
      lr: 1,
    });
    for (const [layer, [m, n]] of shapes.entries()) {
      let M = matrix(m, n, () => 0);
      let X = rowsOf(noise(m * n, 77, layer), [m, n]);
      for (const [step, now] of visited!.entries()) {
        const next = rowsOf(now.state.get(`M.layers.${layer}.weight`)!, [m, n]);
        const expected = added(M, rowsOf(own(0, step, layer), [m, n])).map((row) => row.map((x) => 0.95 * x));
        expect(largestDifference(next, expected)).toBeLessThan(1e-5);
        expect(normOf(added(now.X[layer]!, X, -1)) / Math.sqrt(m / n)).toBeCloseTo(Math.sqrt(Math.min(m, n)), 4);
        [M, X] = [next, now.X[layer]!];
      }
    }
  });

  it("decides by what the ranks have reduced: gradients of 0 on one rank, and on all", async () => {
    const silent = await trainMatrices(
      3,
      () => dion({ weightDecay: 0 }),
      shapes,
      (rank, step, layer) => (rank === 1 ? zero(0, own(0, 0, layer).length) : own(rank, step, layer)),
      { steps: 4 },
    );
    for (const visited of silent) {
      expect(visited.at(-1)!.X).toEqual(silent[0]!.at(-1)!.X);
      expect(visited.at(-1)!.X).not.toEqual(visited[0]!.X);
    }
    const [still] = await trainMatrices(
      3,
      () => dion({ weightDecay: 0 }),
      shapes,
      (_, __, layer) => zero(0, own(0, 0, layer).length),
      { steps: 2 },
    );
    for (const [layer, [m, n]] of shapes.entries()) {
      expect(still![1]!.X[layer]).toEqual(rowsOf(noise(m * n, 77, layer), [m, n]));
      const key = `Q.layers.${layer}.weight`;
      const offset = shapes.slice(0, layer).reduce((sum, [rows, columns]) => sum + rows * columns, 0);
      expect(still![1]!.state.get(key)).toEqual(randomFloats(2 * n, { seed: 0, stream: offset })); // r = 8/4
    }
  });

  it.each(["householder-qr", "cholesky-qr"] as const)(
    "moves along the one direction of a gradient of rank 1, and along no round-off, by %s",
    async (orthonormalize) => {
      for (const [m, n] of [
        [160, 30], // of fewer than 128 rows Cholesky-QR is Householder's
        [8, 16],
      ] as const) {
        const [a, b] = [noise(m, 1), noise(n, 2)];
        const single: Gradients = (rank) =>
          Float32Array.from({ length: m * n }, (_, i) => (1 + rank) * a[Math.floor(i / n)]! * b[i % n]!);
        const start = (_: number, length: number) => new Float32Array(length);
        const [visited] = await trainMatrices(
          2,
          () => dion({ rank: 4, weightDecay: 0, orthonormalize }),
          [[m, n]],
          single,
          { steps: 1, lr: 1, start },
        );
        const unit = rowsOf(
          Float64Array.from(
            { length: m * n },
            (_, i) => (-Math.sqrt(m / n) * a[Math.floor(i / n)]! * b[i % n]!) / Math.hypot(...a) / Math.hypot(...b),
          ),
          [m, n],
        );
        expect(largestDifference(visited![0]!.X[0]!, unit)).toBeLessThan(1e-5);
      }
    },
  );

  it("lets the momenta of ranks with other data drift apart as a random walk; with `errorFeedback: own` more slowly, and with the same X", async () => {
    const [steps, ranks] = [64, 4];
    const unrelated: Gradients = (rank, step, layer) => noise(shapes[layer]![0] * shapes[layer]![1], rank, step, layer);
    const run = (errorFeedback: true | "own") =>
      trainMatrices(ranks, () => dion({ rank: 0.5, weightDecay: 0, errorFeedback }), shapes, unrelated, { steps });
    const [shared, separate] = [await run(true), await run("own")];
    const apart = (all: Awaited<ReturnType<typeof run>>, step: number) => {
      const momenta = all.map((visited) =>
        shapes.map((shape, layer) => rowsOf(visited[step - 1]!.state.get(`M.layers.${layer}.weight`)!, shape)),
      );
      return shapes.map(
        (_, layer) => momentumDrift(momenta.map((of) => of[layer]!)) * normOf(meanOf(momenta.map((of) => of[layer]!))),
      );
    };
    for (const [layer] of shapes.entries()) {
      // From step 16 to 64 the squared distance of a random walk grows by 4.
      const growth = (apart(shared, 64)[layer]! / apart(shared, 16)[layer]!) ** 2;
      expect(growth).toBeGreaterThan(2.5);
      expect(growth).toBeLessThan(6);
      expect(apart(separate, 64)[layer]!).toBeLessThan(0.8 * apart(shared, 64)[layer]!);
      expect(largestDifference(separate[0]!.at(-1)!.X[layer]!, shared[0]!.at(-1)!.X[layer]!)).toBeLessThan(1e-5);
    }
  });

  it("keeps the mean of momenta that drift apart, because they are f32: in bf16, which no option takes, it would be lost", async () => {
    const [m, n, ranks, steps] = [16, 12, 8, 100];
    const common = (step: number) => noise(m * n, step);
    /** Three times as far apart as they are large in common; pairs of ranks cancel. */
    const own: Gradients = (rank, step) => {
      const apart = noise(m * n, step, 1 + (rank >> 1));
      return common(step).map((x, i) => x + (rank % 2 === 0 ? 3 : -3) * apart[i]!);
    };
    const inBf16 = (algorithm: Algorithm): Algorithm => ({
      ...algorithm,
      async step(X, G, state, ...others) {
        await algorithm.step(X, G, state, ...others);
        const { M } = state.elements as { M: Tensor };
        using rounded = M.to("bf16");
        noGrad(() => M.copy_(rounded));
      },
    });
    // With full rank M = μ B, whatever the basis: its mean follows from the mean gradients.
    const means: Matrix[] = [];
    for (let step = 0; step < steps; step++) {
      const B = added(means.at(-1) ?? matrix(m, n, () => 0), rowsOf(common(step), [m, n]));
      means.push(B.map((row) => row.map((x) => 0.95 * x)));
    }
    /** ‖mean of the ranks' M − its exact value‖ / ‖its exact value‖, after a step. */
    const errorsOf = async (errorFeedback: true | "own", wrap = (algorithm: Algorithm) => algorithm) => {
      const all = await trainMatrices(ranks, () => wrap(dion({ rank: "full", errorFeedback })), [[m, n]], own, {
        steps,
      });
      return (after: number) => {
        const M = meanOf(all.map((visited) => rowsOf(visited[after - 1]!.state.get("M.layers.0.weight")!, [m, n])));
        return normOf(added(M, means[after - 1]!, -1)) / normOf(means[after - 1]!);
      };
    };
    for (const errorFeedback of [true, "own"] as const)
      expect((await errorsOf(errorFeedback))(steps)).toBeLessThan(1e-6);
    const [shared, separate] = [await errorsOf(true, inBf16), await errorsOf("own", inBf16)];
    // Half a unit of bf16 of something three times as large, less by the mean of eight.
    expect(shared(1)).toBeGreaterThan(0.001);
    expect(shared(1)).toBeLessThan(0.003);
    expect(shared(100)).toBeGreaterThan(5 * shared(1)); // as the drift, √t
    expect(separate(100)).toBeLessThan(shared(100) / 2);
  });

  it("sends two messages for all matrices, of (m + n) r floats each way", async () => {
    const messages = async (layers: number) => {
      const all = await trainMatrices(
        2,
        () => dion({ rank: 2 }),
        Array.from({ length: layers }, () => [8, 8] as const),
        () => noise(64, 1),
        { steps: 1 },
      );
      return all.map((visited) => visited[0]!.messages);
    };
    // To the owner and back, and a small all-reduce: 2 (P − 1) and P − 1 of each rank.
    for (const layers of [2, 60]) expect(await messages(layers)).toEqual([3, 3]);
    const eight = Array.from({ length: 8 }, () => [64, 96] as const);
    const all = await trainMatrices(
      4,
      () => dion({ rank: 8 }),
      eight,
      () => noise(64 * 96, 1),
      { steps: 1 },
    );
    const total = all.reduce((sum, [only]) => sum + only!.bytes - 32 * only!.messages, 0); // without headers
    expect(total).toBe(4 * ((2 * 3) / 4) * 4 * 8 * (64 + 96) * 8); // four ranks, 2 (P − 1)/P, 4 bytes
  });

  it("does not send P copies of a matrix's factor from its owner, where there are more ranks than matrices", async () => {
    const all = await trainMatrices(
      5,
      () => dion({ rank: 64 }),
      [[1024, 64]],
      () => noise(1024 * 64, 1),
      { steps: 1 },
    );
    const factor = 4 * 1024 * 64; // bytes of B Q; those of R are a sixteenth
    expect(Math.max(...all.map(([only]) => only!.bytes))).toBeLessThan(2.6 * factor); // 4 of it directly
  });

  it("without error feedback takes P and R of a momentum that forgets", async () => {
    const [visited] = await trainMatrices(
      1,
      () => dion({ rank: 2, errorFeedback: false, momentum: 0.5 }),
      shapes,
      own,
      { steps: 3 },
    );
    for (const [layer, [m, n]] of shapes.entries()) {
      const M = [0, 1, 2].reduce(
        (sum, step) =>
          added(
            sum.map((row) => row.map((x) => x / 2)),
            rowsOf(own(0, step, layer), [m, n]),
          ),
        matrix(m, n, () => 0),
      );
      expect(largestDifference(rowsOf(visited![2]!.state.get(`M.layers.${layer}.weight`)!, [m, n]), M)).toBeLessThan(
        1e-6,
      );
    }
  });

  it("by singular values takes the best approximation: the power iteration ends there", async () => {
    // Every step has the same gradient, with distinct singular values, and nothing is forgotten: P and R become the
    // singular vectors.
    const diagonal = [9, 6, 4, 1, 0.5, 0.2, 0.1, 0];
    const rotation = gramSchmidt(rowsOf(noise(64, 3), [8, 8]));
    const G = product(
      product(
        rotation,
        matrix(8, 8, (i, j) => (i === j ? diagonal[i]! : 0)),
      ),
      transposed(gramSchmidt(rowsOf(noise(64, 4), [8, 8]))),
    );
    const run = async (approximate: "svd" | "power-iteration") => {
      const all = await trainMatrices(
        2,
        () => dion({ rank: 2, errorFeedback: false, momentum: 0, weightDecay: 0, approximate }),
        [[8, 8]],
        () => G.flat(),
        { steps: 60, lr: 1 },
      );
      expect(all[0]!.at(-1)!.X).toEqual(all[1]!.at(-1)!.X);
      return added(all[0]!.at(-1)!.X[0]!, all[0]!.at(-2)!.X[0]!, -1);
    };
    expect(largestDifference(await run("svd"), await run("power-iteration"))).toBeLessThan(1e-5);
  });

  it.skipIf(!python)(`stays with plain-formula Dion in PyTorch, in float64, over 100 steps${needsPython}`, async () => {
    const [steps, ranks, lr] = [100, 2, 0.01];
    const all = await trainMatrices(ranks, () => dion({ rank: 0.5, weightDecay: 0.1 }), shapes, own, { steps, lr });
    for (const [layer, [m, n]] of shapes.entries()) {
      const r = Math.min(m, n) / 2;
      const offset = shapes.slice(0, layer).reduce((sum, [rows, columns]) => sum + rows * columns, 0);
      const gradients = Array.from({ length: steps }, (_, t) =>
        Array.from({ length: ranks }, (_, rank) => [...(own(rank, t, layer) as Float32Array)]),
      );
      const { X } = await runPython(
        `
G, X, Q = (inputs[name].double() for name in ("G", "X", "Q"))
m, n = X.shape
M = torch.zeros_like(X)
for t in range(G.shape[0]):
    B = M + G[t].mean(0)
    P, _ = torch.linalg.qr(B @ Q)
    R = B.T @ P
    M = B - (1 - 0.95) * P @ R.T
    Q = R / R.norm(dim=0)
    X = (1 - ${lr} * 0.1) * X - ${lr} * (m / n) ** 0.5 * P @ Q.T
outputs["X"] = X`,
        {
          G: fromTypedArray(Float32Array.from(gradients.flat(2)), [steps, ranks, m, n]),
          X: fromTypedArray(noise(m * n, 77, layer), [m, n]),
          Q: fromTypedArray(randomFloats(n * r, { seed: 0, stream: offset }), [n, r]),
        },
      );
      const expected = rowsOf((await X!.toTypedArray()) as Float64Array, [m, n]);
      // Rounding of 100 steps in f32, enlarged where singular values come close.
      expect(largestDifference(all[0]!.at(-1)!.X[layer]!, expected), `${m} × ${n}`).toBeLessThan(5e-6);
    }
  });

  it("names a matrix whose rank is less, and a parameter that is no matrix", async () => {
    const train = (rank: number) =>
      trainMatrices(
        1,
        () => dion({ rank }),
        [[16, 8]],
        () => noise(128, 1),
        { steps: 1 },
      );
    await expect(train(9)).rejects.toThrow(
      "dion.rank: 9 is more than the rank of layers.0.weight, which is [16, 8]; take at most 8, or a fraction such as 0.25",
    );
    await onRanks(1, async (group) => {
      const arena = new Arena(new Linear(4, 4));
      expect(() => new Optimizer(arena, group, { algorithm: dion() })).toThrow(
        "dion works on matrices, and bias has the shape [4]: give such parameters another algorithm, by optimizer.groups in a recipe",
      );
    });
  });
});
