import { expect, it } from "vitest";
import {
  Arena,
  CausalSelfAttention,
  crossEntropy,
  Embedding,
  Linear,
  Module,
  manualSeed,
  memory,
  RMSNorm,
  randint,
  scope,
  type Tensor,
} from "./index.ts";

class Model extends Module {
  readonly embedding = new Embedding(64, 32);
  readonly norm = new RMSNorm(32);
  readonly attention = new CausalSelfAttention(32, 4);
  readonly head = new Linear(32, 64, { bias: false, role: "head" });

  loss(tokens: Tensor, next: Tensor): Tensor {
    const x = this.embedding.forward(tokens);
    return crossEntropy(this.head.forward(x.add(this.attention.forward(this.norm.forward(x)))), next);
  }
}

it("trains 1,000 steps without a leak: the same tensors, the same bytes, and no larger process", async () => {
  manualSeed(3);
  const model = new Model();
  const arena = new Arena(model);
  const step = () =>
    scope(async () => {
      arena.zeroGradients();
      const loss = model.loss(randint(0, 64, [16, 64]), randint(0, 64, [16, 64])); // some 5 MB of activations
      await loss.backward();
      arena.parameters.add_(arena.gradients, { alpha: -0.01 });
      return loss.item();
    });

  for (let i = 0; i < 100; i++) await step(); // until allocators and the JIT have settled
  const before = memory();
  const rss = process.memoryUsage.rss();
  for (let i = 0; i < 1000; i++) {
    await step();
    if (i % 100 === 0) expect(memory()).toEqual(before);
  }
  expect(memory()).toEqual(before);
  // One leaked (16, 64, 64) tensor per step would be 260 MB.
  expect(process.memoryUsage.rss() - rss).toBeLessThan(64e6);
});
