/**
 * DeMo, decoupled momentum: ranks keep momenta of their own, and share only the largest cosines of each chunk of them.
 * Peng, Chen, Su, Quesnelle, Kingma, Liu 2024, Algorithm 1, https://arxiv.org/abs/2411.19870
 *
 *   m ← β m + g                      g, m: this rank's own gradient and momentum
 *   q ← largest k cosines of m       of each chunk; the transform and its inverse are those of the codec dct-top-k
 *   m ← m − q                        what was not sent stays in the momentum: error feedback
 *   Q ← mean_ranks(q)                added in rank order
 *   θ ← θ − η (sign(Q) + λ θ)        with `sign: false` θ ← θ − η (Q + λ θ)
 *
 * Chunks: squares of c × c of a matrix whose sides are multiples of c = `chunk`; runs of c² elements of any other
 * matrix, so that as large a share of it is sent; runs of c elements of a vector. The authors' code cuts each side by
 * its largest divisor of at most c, and a prime side then has no transform. Their code differs in two more points,
 * which are options here: `over: senders` divides each cosine by the number of ranks that sent it, and `rateInMomentum`
 * adds η g to m in place of g.
 *
 * Shapes: θ, g, m, q, Q (n)
 * Sent per step: 1 message, (P − 1) b bytes, b = ⌈k ⌈log2 c²⌉ / 8⌉ + 4 k for each chunk of c² elements: with c 64 and
 * k 32, 176 bytes for 16 KiB.
 */
import { dctTopK } from "@terse/codecs";
import { flag, nonNegativeFloat, oneOf, positiveInteger, unitIntervalFloat, v } from "@terse/options";
import { noGrad, scope, type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import type { Rules, Vector } from "./algorithm.ts";
import { resultOf } from "./kernels.ts";
import type { State } from "./state.ts";

const options = v.object({
  decay: v.optional(unitIntervalFloat, 0.999), // β
  k: v.optional(positiveInteger, 32), // cosines that a chunk sends
  chunk: v.optional(v.pipe(positiveInteger, v.maxValue(64)), 64), // c
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  sign: v.optional(flag, true), // whether θ takes the sign of Q, as in the paper's experiments
  over: v.optional(oneOf(["ranks", "senders"]), "ranks"), // what the sum of a cosine is divided by
  rateInMomentum: v.optional(flag, false), // whether m takes η g
});

export interface DemoState extends State {
  readonly elements: {
    m: Tensor; // this rank's own, without what it has sent
  };
}

/** DeMo: ranks keep their own momenta and send the largest cosines of each chunk. Peng et al. 2024, Algorithm 1. */
export const demo = define({
  name: "demo",
  options,
  conflicts: [
    {
      option: "k",
      when: ({ k, chunk }) => k > chunk ** 2,
      because: ({ k, chunk }) => `a chunk of ${chunk} × ${chunk} has ${chunk ** 2} cosines, and k is ${k}`,
      remedy: "take fewer",
    },
  ],

  create({ decay, k, chunk, weightDecay, sign, over, rateInMomentum }): Rules<DemoState> {
    const squares = dctTopK({ block: chunk, k, dimensions: 2 });
    const runs = dctTopK({ block: chunk ** 2, k });
    const ofVectors = dctTopK({ block: chunk, k: Math.min(k, chunk) });
    const codecOf = (vector: Vector) => {
      if (sidesOf(vector).length === 1) return ofVectors;
      return isSquares(vector) ? squares : runs;
    };
    const isSquares = (vector: Vector) => {
      const sides = sidesOf(vector);
      return sides.length === 2 && sides.every((side) => side % chunk === 0);
    };

    return {
      splits: "at segments", // chunks belong to one parameter

      init: (θ) => ({ elements: { m: zerosLike(θ) } }),

      async step(θ, g, { elements: { m } }, exchange, { lr: η, gradientScale, vector }) {
        const [toChunks, fromChunks] = isSquares(vector) ? orderOfSquares(sidesOf(vector), chunk) : [asItIs, asItIs];
        const scale = rateInMomentum ? gradientScale * η : gradientScale;
        noGrad(() => m.mul_(decay));
        using x = resultOf(() => (scale === 1 ? toChunks(g) : toChunks(g).mul(scale)));
        using error = resultOf(() => toChunks(m)); // m itself where chunks are runs
        using Q = zerosLike(x);

        // m ← m + x, q and m − q, Q: the exchange adds x to the error, and leaves there what it does not send
        await exchange.sparse(x, { codec: codecOf(vector), into: Q, error, over });
        await exchange.agreed();

        scope(() =>
          noGrad(() => {
            if (fromChunks !== asItIs) m.copy_(fromChunks(error).view(m.shape));
            const update = fromChunks(sign ? Q.sign() : Q).view(θ.shape);
            θ.mul_(1 - η * weightDecay).sub_(update.mul(η));
          }),
        );
      },

      messages: (vector) => [{ kind: "sparse", n: vector.n, codec: codecOf(vector) }],
    };
  },
});

/** [n] of a vector; [rows, columns] of a matrix, where the columns are all dimensions after the first. */
function sidesOf({ segments: [segment] }: Vector): readonly number[] {
  const { shape, length } = segment!;
  return shape.length < 2 ? [length] : [shape[0]!, length / shape[0]!];
}

type Order = (x: Tensor) => Tensor;

const asItIs: Order = (x) => x.view([x.length]);

/** A matrix in the order in which the codec takes squares, one after the other and row by row, and back. */
function orderOfSquares([rows, columns]: readonly number[], c: number): [to: Order, from: Order] {
  const [down, across] = [rows! / c, columns! / c];
  return [
    (x) => x.view([down, c, across, c]).permute(0, 2, 1, 3).contiguous().view([x.length]),
    (x) => x.view([down, across, c, c]).permute(0, 2, 1, 3).contiguous(),
  ];
}
