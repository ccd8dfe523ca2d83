import { describe, expect, it } from "vitest";
import { sgd } from "../index.ts";
import { mean, type Oracle, optimizerContract } from "../testing/optimizer-contract.ts";

function oracle(n: number, { dampening, nesterov }: { dampening: number; nesterov: boolean }): Oracle {
  let m: number[] | undefined;
  return (θ, g, { lr }) => {
    const d = mean(g).map((value, i) => value + 0.25 * θ[i]!);
    m = m ? m.map((value, i) => 0.5 * value + (1 - dampening) * d[i]!) : d;
    for (let i = 0; i < n; i++) θ[i] = θ[i]! - lr * (nesterov ? d[i]! + 0.5 * m[i]! : m[i]!);
  };
}

const variants = {
  "with dampening": { momentum: 0.5, dampening: 0.5 },
  nesterov: { momentum: 0.5, nesterov: true },
};
for (const [name, options] of Object.entries(variants))
  optimizerContract(`sgd, ${name}`, {
    create: () => sgd({ weightDecay: 0.25, ...options }),
    oracle: (n) => oracle(n, { dampening: 0, nesterov: false, ...options }),
    tolerance: 1e-5, // of values up to 100
  });

optimizerContract("sgd without momentum", {
  create: () => sgd({ weightDecay: 0.25 }),
  oracle:
    () =>
    (θ, g, { lr }) => {
      for (const [i, value] of mean(g).entries()) θ[i] = θ[i]! - lr * (value + 0.25 * θ[i]!);
    },
  tolerance: 1e-5,
});

describe("sgd", () => {
  it("refuses nesterov without momentum, and with dampening, as PyTorch", () => {
    for (const options of [{}, { momentum: 0.9, dampening: 0.1 }])
      expect(() => sgd({ nesterov: true, ...options })).toThrow(
        "sgd.nesterov: needs a momentum above 0 and a dampening of 0",
      );
  });
});
