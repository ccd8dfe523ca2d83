/**
 * Dion over a mesh of data-parallel × weight-parallel ranks, where a rank has one shard i of each matrix's momentum and
 * updates that shard. Ahn and Xu 2025, Algorithm 2, https://arxiv.org/abs/2504.05295
 *
 *   Ĝ⁽ⁱ⁾ ← mean_weight(G)⁽ⁱ⁾                along the weight axis, each rank keeps its shard, as ZeRO-1 does
 *   B̂⁽ⁱ⁾ ← M̂⁽ⁱ⁾ + Ĝ⁽ⁱ⁾                      line 7
 *   P ← orth(Σ_i E_DP[B̂⁽ⁱ⁾ Q⁽ⁱ⁾])           Distributed-PowerIter1; over all ranks, at the matrix's owner
 *   R⁽ⁱ⁾ ← E_DP[B̂⁽ⁱ⁾ᵀ P]                    along the data axis; nothing is sent where it has one rank
 *   c ← √ Σ_i ‖columns of R⁽ⁱ⁾‖²            Distributed-ColumnNormalize; along the weight axis
 *   M̂⁽ⁱ⁾ ← B̂⁽ⁱ⁾ − (1 − μ) P R⁽ⁱ⁾ᵀ           line 9
 *   Q⁽ⁱ⁾ ← R⁽ⁱ⁾ / c                         line 10; columns of round-off as in dion.ts
 *   X⁽ⁱ⁾ ← (1 − η λ) X⁽ⁱ⁾ − η √(m/n) P Q⁽ⁱ⁾ᵀ line 11
 *   X ← all X⁽ⁱ⁾                            along the weight axis, as ZeRO-1 does
 *
 * The paper's ranks of one weight axis share their data's gradient; here each has data of its own, so their gradients
 * are averaged first. Options as in dion.ts; where `orientation` transposes X, shards are slices of its m rows in place
 * of its n columns.
 *
 * The ranks tell each other their shards' norms, and not the squares, which f32 cannot hold of very small columns.
 *
 * Shapes, for W weight-parallel ranks: X, G (m, n)   M̂, Ĝ, B̂, X⁽ⁱ⁾ (m, n/W)   P (m, r)   Q, R (n/W, r)   c (r)
 * Sent per step: 5 messages for all matrices of a bucket; in bytes, if the ranks own equally much:
 *   along the weight axis              2 (W − 1)/W · 4 m n + (W − 1) · 4 r
 *   along the data axis of D ranks     2 (D − 1)/D · 4 r n/W
 *   among all P ranks                  2 (P − 1)/P · 4 m r
 */
import { copy } from "@terse/collectives";
import { addLowRank } from "@terse/native-optimizers";
import { OptionsError } from "@terse/options";
import { empty, fromTypedArray, noGrad, scope, type Tensor, zeros } from "@terse/tensor";
import type { Algorithm, Vector } from "./algorithm.ts";
import { type DionSettings, sizesOf } from "./dion-options.ts";
import { multiply, resultOf } from "./kernels.ts";
import { orthonormalize } from "./orthonormalize.ts";
import { randomFloats } from "./random-floats.ts";
import type { Shard, State } from "./state.ts";

export interface ShardedDionState extends State {
  readonly shards: {
    M: Shard; // momentum, and everything not yet sent
    Q: Shard; // right basis of the last step, the same along the data axis
  };
}

export function shardedDion(given: DionSettings): Pick<Algorithm<ShardedDionState>, "init" | "step" | "messages"> {
  const { momentum: μ, errorFeedback, weightDecay: λ, eps, seed } = given;
  return {
    init(X, vector) {
      const { columns, r, width, transposed, index, count, shape } = shardOf(vector);
      const Q = fromTypedArray(randomFloats(columns * r, { seed, stream: vector.offset }), [columns, r]);
      const own = noGrad(() => Q.narrow(0, index * width, width).clone());
      Q.dispose();
      const of = transposed ? "rows" : "columns";
      return {
        shards: {
          M: { values: zeros(shape, { device: X.device }), of, index, count },
          Q: { values: own.to({ device: X.device }), of: "rows", index, count },
        },
      };
    },

    async step(X, G, { shards }, exchange, { step, lr: η, gradientScale, vector }) {
      const { m, n, rows, r, width, transposed, index, count, shape } = shardOf(vector);
      const { owner, mesh } = vector;
      const [M, Q] = [shards.M.values, shards.Q.values];
      const [alongData, alongWeight] = [exchange.among(mesh.data), exchange.among(mesh.weight)];
      const { device } = X;
      using P = empty([rows, r], { device });
      using R = empty([width, r], { device });
      using shard = empty(shape, { device });

      // Ĝ⁽ⁱ⁾ ← mean_weight(G)⁽ⁱ⁾
      using slices = resultOf(() => slicesOf(G, count, transposed).mul_(gradientScale)); // (W, …), contiguous
      await alongWeight.reduce(slices, shard);

      // B̂⁽ⁱ⁾ ← M̂⁽ⁱ⁾ + Ĝ⁽ⁱ⁾, in M's place
      noGrad(() => (errorFeedback ? M : M.mul_(μ)).add_(shard));
      using B = transposed ? M.transpose(0, 1) : M.view(...shape);
      using Bᵀ = B.transpose(0, 1);

      // P ← orth(Σ_i E_DP[B̂⁽ⁱ⁾ Q⁽ⁱ⁾]): of the mean over all ranks, which is 1/W of that
      multiply(B, Q, P);
      const compute = orthonormalize(r, given.orthonormalize, seed + step, device);
      await exchange.computedMean(P, { owner, compute });

      // R⁽ⁱ⁾ ← E_DP[B̂⁽ⁱ⁾ᵀ P]
      multiply(Bᵀ, P, R);
      if (mesh.data.length > 1) await alongData.mean(R);

      // c ← √ Σ_i ‖columns of R⁽ⁱ⁾‖²
      const columns = new Float32Array(width * r);
      copy(columns, R);
      const norms = new Float32Array(count * r);
      await alongWeight.gather(normsOf(columns, r), norms);

      // M̂⁽ⁱ⁾ ← B̂⁽ⁱ⁾ − (1 − μ) P R⁽ⁱ⁾ᵀ
      const subtract = { rank: r, keep: 1, scale: μ - 1 };
      const product = (right: Tensor) => (transposed ? ([right, P] as const) : ([P, right] as const));
      if (errorFeedback === true) addLowRank(M, ...product(R), subtract);
      if (errorFeedback === "own") {
        using own = noGrad(() => Bᵀ.matmul(P));
        addLowRank(M, ...product(own), subtract);
      }

      // Q⁽ⁱ⁾ ← R⁽ⁱ⁾ / c;  X⁽ⁱ⁾ ← (1 − η λ) X⁽ⁱ⁾ − η √(m/n) P Q⁽ⁱ⁾ᵀ
      const basis = new Float32Array(width * r);
      copy(basis, Q);
      normalize(basis, columns, normsOf(norms, r), eps);
      copy(Q, basis);
      copy(R, columns);
      using updated = resultOf(() => slicesOf(X, count, transposed));
      scope(() => noGrad(() => shard.copy_(updated.narrow(0, index, 1).view(...shape))));
      addLowRank(shard, ...product(R), { rank: r, keep: 1 - η * λ, scale: -η * Math.sqrt(m / n) });

      // X ← all X⁽ⁱ⁾
      await alongWeight.gather(shard, updated);
      await exchange.agreed();
      scope(() => noGrad(() => X.copy_(wholeOf(updated, [m, n], transposed))));
    },

    messages(vector) {
      const { rows, r, width } = shardOf(vector);
      const { n, owner, mesh } = vector;
      const alongData = { kind: "mean among", n: width * r, members: mesh.data } as const;
      return [
        { kind: "reduce among", n, members: mesh.weight },
        { kind: "computedMean", n: rows * r, owner },
        ...(mesh.data.length > 1 ? [alongData] : []),
        { kind: "gather among", n: r * mesh.weight.length, members: mesh.weight },
        { kind: "gather among", n, members: mesh.weight },
      ];
    },
  };

  /** The sizes of this rank's shard: width of its `columns`, and its shape as a slice of X. */
  function shardOf(vector: Vector) {
    const sizes = sizesOf(vector, given);
    const { m, n, columns, transposed } = sizes;
    const { weight } = vector.mesh;
    const count = weight.length;
    const { name } = vector.segments[0]!;
    if (given.approximate === "svd")
      throw new OptionsError([
        {
          path: `${given.where}.approximate`,
          problem: "svd needs whole matrices",
          remedy: "take power-iteration, or set parallel.weight to 1",
        },
      ]);
    if (columns % count !== 0)
      throw new OptionsError([
        {
          path: "parallel.weight",
          problem: `${count} does not divide the ${columns} ${transposed ? "rows" : "columns"} of ${name}, which is [${m}, ${n}]`,
          remedy:
            "take a weight that divides them, or give such parameters another algorithm, by optimizer.groups in a recipe",
        },
      ]);
    const width = columns / count;
    const shape: [number, number] = transposed ? [width, n] : [m, width];
    return { ...sizes, width, shape, index: weight.indexOf(vector.rank), count };
  }
}

/**
 * X (m, n) as equal slices one after the other, (count, m, n / count), or of its rows (count, m / count, n): a copy.
 */
function slicesOf(X: Tensor, count: number, ofRows: boolean): Tensor {
  const [m, n] = X.shape as [number, number];
  if (ofRows) return X.view(count, m / count, n).clone();
  return empty([count, m, n / count], { device: X.device }).copy_(X.view(m, count, n / count).permute(1, 0, 2));
}

/** The matrix of these slices, as a view. */
function wholeOf(slices: Tensor, [m, n]: readonly [number, number], ofRows: boolean): Tensor {
  return ofRows ? slices.view(m, n) : slices.permute(1, 0, 2).reshape(m, n);
}

/** ‖column‖ of (n, r), row by row: squares are added in fp64 in the order of rows. */
function normsOf(columns: Float32Array, r: number): Float32Array {
  const sums = new Float64Array(r);
  for (let i = 0; i < columns.length; i++) sums[i % r]! += columns[i]! * columns[i]!;
  return Float32Array.from(sums, Math.sqrt);
}

/** As `normalizeColumns`, with norms that are known. */
function normalize(q: Float32Array, columns: Float32Array, norms: Float32Array, threshold: number): void {
  const least = threshold * Math.max(...norms);
  for (let i = 0; i < columns.length; i++) {
    const norm = norms[i % norms.length]!;
    columns[i] = norm > least ? columns[i]! / norm : 0;
    if (norm > least) q[i] = columns[i]!;
  }
}
