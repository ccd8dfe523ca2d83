/**
 * For tests: the messages of Dion and PowerSGD, without their algebra. A step works on whole layers and sends two
 * messages that depend on each other.
 *
 *   M ← M + G
 *   P ← mean_ranks(M Q)
 *   R ← mean_ranks(Mᵀ P)
 *   M ← M − P Rᵀ / 1024,   Q ← R / 64,   X ← X − η P Rᵀ / 1024
 *
 * Shapes: X, G, M (m, n)   P (m, 1)   Q, R (n, 1)
 */
import { keep, noGrad, ones, type Tensor, zerosLike } from "@terse/tensor";
import type { Algorithm, State } from "../index.ts";

export interface PowerIterationState extends State {
  readonly elements: { M: Tensor };
  readonly replicated: { Q: Tensor };
}

export function powerIteration(): Algorithm<PowerIterationState> {
  return {
    name: "power-iteration",
    splits: "at segments",

    init(θ) {
      const [, n] = sizeOf(θ);
      return { elements: { M: zerosLike(θ) }, replicated: { Q: ones([n, 1]) } };
    },

    async step(θ, g, { elements, replicated: { Q } }, exchange, { lr, gradientScale }) {
      const [m, n] = sizeOf(θ);
      const M = elements.M.view([m, n]);
      const P = noGrad(() => {
        elements.M.add_(g, { alpha: gradientScale });
        return keep(M.matmul(Q));
      });

      await exchange.mean(P);
      const R = noGrad(() => keep(M.transpose(0, 1).matmul(P)));

      await exchange.mean(R);
      await exchange.agreed();
      noGrad(() => {
        const update = P.matmul(R.transpose(0, 1)).mul(1 / 1024);
        M.sub_(update);
        Q.copy_(R.mul(1 / 64));
        θ.view([m, n]).sub_(update.mul(lr));
      });
      P.dispose();
      R.dispose();
    },

    messages({ segments: [segment] }) {
      const [m, n] = sizeOf(segment!);
      return [
        { kind: "mean", n: m },
        { kind: "mean", n },
      ];
    },
  };
}

/** A vector is a column. */
function sizeOf({ shape }: { readonly shape: readonly number[] }): [m: number, n: number] {
  return [shape[0] ?? 1, shape.slice(1).reduce((product, length) => product * length, 1)];
}
