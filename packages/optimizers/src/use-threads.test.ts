import { loopback } from "@terse/collectives";
import { Arena, Embedding, manualSeed, numThreads, randn, scope, setNumThreads } from "@terse/tensor";
import { afterAll, expect, it } from "vitest";
import { adamw, Optimizer, useThreads } from "./index.ts";

const before = numThreads();
afterAll(() => {
  setNumThreads(before);
  useThreads(1);
});

it("gives the same parameters on several threads, which are those of the operators", async () => {
  const after = (threads: number) =>
    scope(async () => {
      setNumThreads(threads); // the optimizer's kernels take as many, and run on the operators' threads
      manualSeed(1);
      const arena = new Arena(new Embedding(1500, 700)); // more than a million elements, so that threads share them
      const [group] = loopback(1);
      await using optimizer = new Optimizer(arena, group!, { algorithm: adamw() });
      for (let step = 0; step < 3; step++) {
        arena.gradients.copy_(randn([arena.gradients.length]));
        await optimizer.step({ lr: 0.1, loss: 0 });
      }
      return Buffer.from(((await arena.parameters.toTypedArray()) as Float32Array).buffer);
    });
  const one = await after(1);
  expect((await after(3)).equals(one)).toBe(true);
});

it("refuses what is no number of threads", () => {
  expect(() => useThreads(0.5)).toThrow(/threads is 0\.5, and must be a whole number, 1 or more/);
});
