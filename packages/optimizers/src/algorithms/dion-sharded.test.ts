import { loopback } from "@terse/collectives";
import { Arena, Linear, memory, noGrad } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { dion, lion, Optimizer, type StoredState } from "../index.ts";
import { centralisedDion } from "../testing/centralised-dion.ts";
import {
  added,
  largestDifference,
  type Matrix,
  meanOf,
  normOf,
  product,
  rowsOf,
  transposed,
} from "../testing/matrices.ts";
import { type Gradients, noise, trainMatrices } from "../testing/train-matrices.ts";
import { randomFloats } from "./random-floats.ts";

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

const meshes = [
  { data: 1, weight: 2 },
  { data: 2, weight: 2 },
  { data: 4, weight: 2 },
  { data: 1, weight: 4 },
] as const;

const offsetOf = (layer: number) => shapes.slice(0, layer).reduce((sum, [m, n]) => sum + m * n, 0);

describe("dion over data-parallel × weight-parallel ranks", () => {
  it.each(meshes.flatMap((parallel) => ([1, 0.25, "full"] as const).map((rank) => ({ ...parallel, rank }))))(
    "is centralised Dion on the mean gradient, on $data × $weight ranks with rank $rank",
    async ({ rank, ...parallel }) => {
      const [steps, lr, ranks] = [30, 0.01, parallel.data * parallel.weight];
      const all = await trainMatrices(ranks, () => dion({ rank, weightDecay: 0.1 }), shapes, own, {
        steps,
        lr,
        parallel,
      });
      for (const visited of all) {
        expect(visited.at(-1)!.X).toEqual(all[0]!.at(-1)!.X); // bit for bit
        for (const { bytes, messages, closed } of visited) expect(bytes - 32 * messages).toBe(closed);
      }
      for (const [layer, [m, n]] of shapes.entries()) {
        const smaller = Math.min(m, n);
        const r = rank === "full" ? smaller : rank < 1 ? rank * smaller : rank;
        const expected = centralisedDion([m, n], {
          Q: rowsOf(randomFloats(n * r, { seed: 0, stream: offsetOf(layer) }), [n, r]),
          gradient: (step) => meanOf(Array.from({ length: ranks }, (_, i) => rowsOf(own(i, step, layer), [m, n]))),
          start: rowsOf(noise(m * n, 77, layer), [m, n]),
          ...{ steps, lr, λ: 0.1 },
        });
        const worst = all[0]!.map(({ X }, t) => largestDifference(X[layer]!, expected[t]!.X));
        expect(Math.max(...worst), `${m} × ${n}`).toBeLessThan(2e-6);
        // A rank has a shard of the momentum and of the basis; along the data axis the basis is the same bit for bit.
        const { weight } = parallel;
        for (const [i, visited] of all.entries()) {
          const place = `[columns ${i % weight} of ${weight}]`;
          expect(visited.at(-1)!.state.get(`M.layers.${layer}.weight${place}`)).toHaveLength((m * n) / weight);
          const basis = `Q.layers.${layer}.weight[rows ${i % weight} of ${weight}]`;
          expect(visited.at(-1)!.state.get(basis)).toHaveLength((n * r) / weight);
          expect(visited.at(-1)!.state.get(basis)).toEqual(all[i % weight]!.at(-1)!.state.get(basis));
        }
      }
    },
  );

  it("gives what Algorithm 1 gives on as many ranks, on transposed matrices and with every option that both have", async () => {
    const tall = [160, 8] as const; // with less than 128 rows Cholesky-QR is Householder's
    const gradients: Gradients = (rank, step, layer) =>
      layer < shapes.length ? own(rank, step, layer) : noise(160 * 8, rank, step, layer);
    for (const options of [
      { orientation: "longer" },
      { orientation: "longer", errorFeedback: "own" },
      { errorFeedback: "own", orthonormalize: "cholesky-qr" },
      { errorFeedback: false },
    ] as const) {
      const run = (parallel: { data: number; weight: number }) =>
        trainMatrices(4, () => dion({ rank: 2, ...options }), [...shapes, tall], gradients, { steps: 8, parallel });
      const [whole, sharded] = [await run({ data: 4, weight: 1 }), await run({ data: 2, weight: 2 })];
      for (const layer of [...shapes, tall].keys())
        expect(largestDifference(sharded[0]!.at(-1)!.X[layer]!, whole[0]!.at(-1)!.X[layer]!)).toBeLessThan(1e-6);
    }
  });

  it("moves as far with very small gradients as with others", async () => {
    const parallel = { data: 1, weight: 2 };
    const start = (_: number, n: number) => new Float32Array(n);
    const run = (scale: number) => {
      const gradients: Gradients = (...at) => Float32Array.from(own(...at), (value) => scale * value);
      const options = { steps: 4, start, parallel };
      return trainMatrices(2, () => dion({ rank: 2, weightDecay: 0 }), shapes, gradients, options);
    };
    const [expected, small] = [await run(1), await run(2 ** -90)];
    for (const layer of shapes.keys())
      expect(largestDifference(small[0]!.at(-1)!.X[layer]!, expected[0]!.at(-1)!.X[layer]!)).toBeLessThan(1e-6);
  });

  it("sends five messages for all matrices of a bucket, four with one data-parallel rank", async () => {
    const messages = async (layers: number, parallel: { data: number; weight: number }) => {
      const eights = Array.from({ length: layers }, () => [8, 8] as const);
      const all = await trainMatrices(
        4,
        () => dion({ rank: 2 }),
        eights,
        (rank) => noise(64, rank),
        { steps: 1, parallel },
      );
      return all[0]![0]!.messages;
    };
    // To each other rank: one in a reduce-scatter and in each all-gather, two in each of the others.
    for (const layers of [2, 30]) {
      expect(await messages(layers, { data: 2, weight: 2 })).toBe(3 * (1 + 2 + 2 + 1 + 1));
      expect(await messages(layers, { data: 1, weight: 4 })).toBe(3 * (1 + 2 + 1 + 1));
    }
  });

  it("decides by what the ranks have reduced: gradients of 0 on one rank and of rank 1 on all", async () => {
    const [a, b] = [noise(8, 1), noise(8, 2)];
    const single: Gradients = (rank) =>
      Float32Array.from({ length: 64 }, (_, i) => (rank === 1 ? 0 : 1 + rank) * a[i >> 3]! * b[i & 7]!);
    const options = {
      steps: 1,
      lr: 1,
      start: (_: number, n: number) => new Float32Array(n),
      parallel: { data: 2, weight: 2 },
    };
    const all = await trainMatrices(4, () => dion({ rank: 4, weightDecay: 0 }), [[8, 8]], single, options);
    const along = product(
      [...a].map((x) => [-x / Math.hypot(...a)]),
      [[...b].map((x) => x / Math.hypot(...b))],
    );
    for (const visited of all) {
      expect(visited[0]!.X).toEqual(all[0]![0]!.X);
      expect(largestDifference(visited[0]!.X[0]!, along)).toBeLessThan(1e-5);
    }
  });

  it("frees every tensor that a step makes", async () => {
    for (const orientation of ["rows", "longer"] as const) {
      const groups = loopback(2);
      const ranks = groups.map((group) => {
        const arena = new Arena(new Linear(16, 8, { bias: false }));
        noGrad(() => arena.gradients.fill_(1));
        const algorithm = dion({ orientation });
        return new Optimizer(arena, group, { algorithm, parallel: { data: 1, weight: 2 } });
      });
      for (let step = 0; step < 4; step++) {
        const before = memory().tensors;
        await Promise.all(ranks.map((optimizer) => optimizer.step({ lr: 0.01 })));
        // Less where garbage of other tests is collected.
        expect(memory().tensors, `step ${step}`).toBeLessThanOrEqual(before);
      }
      for (const optimizer of ranks) await optimizer[Symbol.asyncDispose]();
      for (const group of groups) await group.close();
    }
  });

  it("is refused on every rank by one rank's gradient, and no parameter changes", async () => {
    const poisoned: Gradients = (rank, step, layer) =>
      own(rank, step, layer) &&
      Float32Array.from(own(rank, step, layer), (x, i) => (rank === 3 && i === 5 ? Number.NaN : x));
    await expect(
      trainMatrices(4, () => dion(), shapes, poisoned, { steps: 1, parallel: { data: 2, weight: 2 } }),
    ).rejects.toThrow("rank 3 refuses the step: the gradient is not finite");
  });

  it("goes on from a save bit for bit, and on other meshes with the mean momentum", async () => {
    const parallel = { data: 2, weight: 2 };
    const algorithm = () => dion({ rank: 2, orientation: "longer" });
    const straight = await trainMatrices(4, algorithm, shapes, own, { steps: 6, parallel, bucket: 1 });
    const saves: StoredState[] = straight.map((visited) => ({ tensors: visited[2]!.state, scalars: {} }));
    const from = { at: 3, saves, X: straight[0]![2]!.X };
    const resumed = await trainMatrices(4, algorithm, shapes, own, { steps: 6, parallel, from });
    for (const [rank, visited] of resumed.entries()) expect(visited.at(-1)!.X).toEqual(straight[rank]!.at(-1)!.X);

    const other = trainMatrices(4, algorithm, shapes, own, {
      steps: 6,
      parallel: { data: 1, weight: 4 },
      from: { ...from, saves: saves.map((save, i) => (i === 0 ? save : { tensors: new Map(), scalars: {} })) },
    });
    await expect(other).rejects.toThrow("there are 1 of 2 shards of M.layers.0.weight: the save belongs to");

    const wholeOf = (
      all: readonly { state: ReadonlyMap<string, Float32Array> }[],
      layer: number,
      weight: number,
    ): Matrix => {
      const along = layer === 1 ? "rows" : "columns"; // the wide one is transposed
      const shards = Array.from({ length: weight }, (_, i) => {
        const [m, n] = shapes[layer]!;
        const name = `M.layers.${layer}.weight[${along} ${i} of ${weight}]`;
        const shape = along === "rows" ? ([m / weight, n] as const) : ([m, n / weight] as const);
        return meanOf(all.flatMap(({ state }) => (state.has(name) ? [rowsOf(state.get(name)!, shape)] : [])));
      });
      return along === "rows" ? shards.flat() : transposed(shards.flatMap(transposed));
    };
    for (const other of [
      { data: 1, weight: 4 },
      { data: 1, weight: 2 },
      { data: 3, weight: 2 },
    ]) {
      const ranks = other.data * other.weight;
      // A learning rate of 0 and gradients of 0: with rank 2 captured by μ alone, M after the step follows from M
      // before it.
      const still: Gradients = (_, __, layer) => new Float32Array(own(0, 0, layer).length);
      const run = (of: typeof other, count: number) =>
        trainMatrices(count, algorithm, shapes, still, { steps: 4, lr: 0, parallel: of, from });
      const [went, stayed] = [await run(other, ranks), await run(parallel, 4)];
      for (const layer of shapes.keys()) {
        const [M, expected] = [
          wholeOf(
            went.map(([one]) => one!),
            layer,
            other.weight,
          ),
          wholeOf(
            stayed.map(([one]) => one!),
            layer,
            2,
          ),
        ];
        expect(largestDifference(M, expected)).toBeLessThan(1e-5 * normOf(expected));
        expect(normOf(added(M, expected, 1))).toBeGreaterThan(1);
      }
    }
  });

  it("names a mesh that is not that of the ranks, a matrix that it does not divide, and an optimizer that cannot be sharded", async () => {
    const train = (
      algorithm: typeof dion | typeof lion,
      parallel: { data: number; weight: number },
      shape = [8, 8] as [number, number],
      ranks = 2,
    ) =>
      trainMatrices(
        ranks,
        () => algorithm({}),
        [shape],
        () => noise(shape[0] * shape[1], 1),
        { steps: 1, parallel },
      );
    await expect(train(dion, { data: 2, weight: 2 })).rejects.toThrow(
      "parallel: 2 data-parallel × 2 weight-parallel ranks are 4, and there are 2",
    );
    await expect(train(dion, { data: 1, weight: 2 }, [8, 7])).rejects.toThrow(
      "parallel.weight: 2 does not divide the 7 columns of layers.0.weight, which is [8, 7]; take a weight that divides them",
    );
    await expect(train(lion, { data: 1, weight: 2 })).rejects.toThrow(
      "parallel.weight is 2, and lion cannot be sharded: set it to 1, or take dion",
    );
    const svd = () => dion({ approximate: "svd" });
    await expect(train(svd as typeof dion, { data: 1, weight: 2 })).rejects.toThrow(
      "dion.approximate: svd needs whole matrices",
    );
  });
});
