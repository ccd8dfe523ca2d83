import { adamw } from "../index.ts";
import { mean, optimizerContract } from "../testing/optimizer-contract.ts";

optimizerContract("adamw", {
  create: () => adamw({ beta1: 0.5, beta2: 0.75, eps: 2 ** -10, weightDecay: 0.25 }),
  oracle: (n) => {
    const m = new Array<number>(n).fill(0);
    const v = new Array<number>(n).fill(0);
    return (θ, g, { step, lr }) => {
      const average = mean(g);
      const t = step + 1;
      for (let i = 0; i < n; i++) {
        m[i] = 0.5 * m[i]! + 0.5 * average[i]!;
        v[i] = 0.75 * v[i]! + 0.25 * average[i]! ** 2;
        const mHat = m[i]! / (1 - 0.5 ** t);
        const vHat = v[i]! / (1 - 0.75 ** t);
        θ[i] = θ[i]! - lr * (mHat / (Math.sqrt(vHat) + 2 ** -10) + 0.25 * θ[i]!);
      }
    };
  },
});
