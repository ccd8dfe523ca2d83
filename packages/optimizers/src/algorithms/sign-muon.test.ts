import { signMuon } from "../index.ts";
import { type Matrix, matrix, rowsOf } from "../testing/matrices.ts";
import { iterated } from "../testing/newton-schulz.ts";
import { layerRanges, matrixShapes, type Oracle, optimizerContract } from "../testing/optimizer-contract.ts";

const shapes = Object.values(matrixShapes) as unknown as [number, number][];

/** The lines of sign-muon.ts in float64, with μ 1/2 and λ 1/4. */
function oracle(ranks: number, nesterov: boolean): Oracle {
  const momenta = Array.from({ length: ranks }, () => shapes.map(([m, n]) => matrix(m, n, () => 0)));
  return (θ, g, { step, lr }) => {
    const alternate = step % 2 === 0 ? 1 : -1;
    for (const [k, [begin]] of layerRanges().entries()) {
      const [m, n] = shapes[k]!;
      const half = (a: Matrix, b: Matrix) => matrix(m, n, (i, j) => (a[i]![j]! + b[i]![j]!) / 2);
      const all = g.map((of, rank) => {
        const own = rowsOf(of, [m, n], begin);
        momenta[rank]![k] = half(momenta[rank]![k]!, own);
        return iterated(nesterov ? half(momenta[rank]![k]!, own) : momenta[rank]![k]!);
      });
      for (let i = 0; i < m * n; i++) {
        const signs = all.map((U) => Math.sign(U[Math.floor(i / n)]![i % n]!) || alternate);
        const vote = Math.sign(signs.reduce((sum, sign) => sum + sign, 0)) || alternate;
        θ[begin + i] = θ[begin + i]! - lr * (vote + 0.25 * θ[begin + i]!);
      }
    }
  };
}

for (const nesterov of [true, false])
  optimizerContract(`sign-muon ${nesterov ? "with" : "without"} Nesterov's momentum`, {
    create: () => signMuon({ momentum: 0.5, weightDecay: 0.25, nsType: "f32", nesterov }),
    oracle: (_, ranks) => oracle(ranks, nesterov),
  });
