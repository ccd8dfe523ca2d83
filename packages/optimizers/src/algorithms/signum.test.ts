import { signsgd, signum } from "../index.ts";
import { type Oracle, optimizerContract } from "../testing/optimizer-contract.ts";

/** Both papers' Algorithm 1 in float64, with λ 1/4; zeros and ties alternate. */
function oracle(n: number, ranks: number, beta: number): Oracle {
  const m = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
  return (θ, g, { step, lr }) => {
    const alternate = step % 2 === 0 ? 1 : -1;
    for (let i = 0; i < n; i++) {
      let votes = 0;
      for (const [r, own] of g.entries()) {
        m[r]![i] = beta * m[r]![i]! + (1 - beta) * own[i]!;
        votes += Math.sign(m[r]![i]!) || alternate;
      }
      θ[i] = θ[i]! - lr * ((Math.sign(votes) || alternate) + 0.25 * θ[i]!);
    }
  };
}

optimizerContract("signsgd", {
  create: () => signsgd({ weightDecay: 0.25 }),
  oracle: (n, ranks) => oracle(n, ranks, 0),
});

optimizerContract("signum", {
  create: () => signum({ beta: 0.5, weightDecay: 0.25 }),
  oracle: (n, ranks) => oracle(n, ranks, 0.5),
});
