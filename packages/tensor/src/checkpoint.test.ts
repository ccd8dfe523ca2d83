import { expect, it } from "vitest";
import {
  autocast,
  checkpoint,
  dropout,
  Linear,
  manualSeed,
  memory,
  noGrad,
  ones,
  randn,
  randomState,
  scope,
  type Tensor,
  tensor,
} from "./index.ts";

const values = async (x: Tensor) => [...((await x.toTypedArray()) as Float32Array)];
const cpu = { deviceType: "cpu" } as const;

/** A chain of blocks with dropout: all gradients, the next random number, and the tensors alive before backward. */
async function train(checkpointed: boolean, precision: "f32" | "bf16", blocks = 4) {
  return scope(async () => {
    manualSeed(4);
    const layers = Array.from({ length: blocks }, () => [new Linear(32, 128), new Linear(128, 32)] as const);
    const x = randn([64, 32], { requiresGrad: true });
    const before = memory().bytes;
    const forward = () => {
      let y = x.mul(1);
      for (const [up, down] of layers) {
        const block = (y: Tensor) => y.add(dropout(down.forward(up.forward(y).gelu().tanh()), 0.3, true));
        y = checkpointed ? checkpoint(block, y) : block(y);
      }
      return y.to("f32").square().sum();
    };
    const loss = precision === "f32" ? forward() : autocast(cpu, forward);
    const alive = memory().bytes - before;
    await loss.backward();
    const parameters = layers.flatMap(([up, down]) => [...up.parameters(), ...down.parameters()]);
    const gradients = await Promise.all([x, ...parameters].map(({ grad }) => values(grad!)));
    // Else they would be collected while a later test counts tensors.
    for (const parameter of parameters) {
      parameter.grad!.dispose();
      parameter.dispose();
    }
    return { gradients, alive, loss: loss.item(), random: await values(randomState().to("f32")) };
  });
}

it.each(["f32", "bf16"] as const)(
  "has the gradients of the same function without it, to the bit, with dropout and in %s",
  async (precision) => {
    const [plain, again] = [await train(false, precision), await train(true, precision)];
    expect(again.loss).toBe(plain.loss);
    expect(again.gradients).toEqual(plain.gradients);
    expect(again.random).toEqual(plain.random); // a recomputation draws nothing from what comes next
  },
);

it("keeps only what is between the functions", async () => {
  const x = 64 * 32 * 4; // bytes
  const [two, six] = [(await train(true, "f32", 2)).alive, (await train(true, "f32", 6)).alive];
  expect(six - two).toBe(4 * x);
  const [plainTwo, plainSix] = [(await train(false, "f32", 2)).alive, (await train(false, "f32", 6)).alive];
  expect(plainSix - plainTwo).toBeGreaterThan(4 * 10 * x); // three hidden results of four times the width, and more
});

it("computes the function once in forward and once in backward, and leaves no tensor alive", async () => {
  let calls = 0;
  const x = tensor([1, 2], { requiresGrad: true });
  const { tensors } = memory();
  await scope(async () => {
    const y = checkpoint((x) => {
      calls++;
      return x!.square().mul(3);
    }, x);
    expect(calls).toBe(1);
    await y.sum().backward();
    expect(calls).toBe(2);
    x.grad!.dispose();
  });
  expect(memory().tensors).toBe(tensors);
  x.grad = null;
});

it("takes several inputs, functions inside functions, a tensor that is used inside and outside, and an input that ends before backward", () =>
  scope(async () => {
    const [w, x] = [tensor([2, 3], { requiresGrad: true }), tensor([5, 7], { requiresGrad: true })];
    let pending: Promise<void> | undefined;
    scope(() => {
      const factor = ones([2]).mul(10);
      // 10 w² x
      const outer = checkpoint((x, factor) => checkpoint((x) => x!.mul(w), x!.mul(w)).mul(factor!), x, factor);
      pending = outer.mul(w).sum().backward(); // 10 w³ x
    });
    await pending;
    expect(await values(x.grad!)).toEqual([80, 270]); // 10 w³
    expect(await values(w.grad!)).toEqual([600, 1890]); // 30 w² x
  }));

it("is a plain call where nothing is recorded, and where nothing requires a gradient", () =>
  scope(() => {
    const w = tensor([2], { requiresGrad: true });
    expect(noGrad(() => checkpoint((x) => x!.mul(w), tensor([3])).requiresGrad)).toBe(false);
    const y = checkpoint((x) => x!.mul(2), tensor([3]));
    expect([y.item(), y.requiresGrad]).toEqual([6, false]);
  }));

it("refuses a tensor from outside that is not an input, and says why a second computation failed", () =>
  scope(async () => {
    const w = tensor([2], { requiresGrad: true });
    const outside = w.mul(3);
    expect(() => checkpoint((x) => x!.mul(outside), w)).toThrow(/computed outside; pass it as one of the inputs/);
    let calls = 0;
    const failing = checkpoint((x) => {
      if (calls++ > 0) throw new Error("the disk is full");
      return x!.mul(w);
    }, w);
    await expect(failing.sum().backward()).rejects.toThrow(/computed again: Error: the disk is full/);
    await w.mul(5).sum().backward(); // the next one is not affected
    expect(w.grad!.item()).toBe(5);
    expect(() =>
      checkpoint(() => {
        throw new Error("at once");
      }, w),
    ).toThrow("at once");
  }));

it("refuses an async function, whose rejection ends no process", () =>
  scope(async () => {
    const w = tensor([2], { requiresGrad: true });
    const later = async (x: Tensor) => Promise.reject(new Error(`lost: ${x}`));
    expect(() => checkpoint(later as never, w)).toThrow("checkpoint: the function is async");
    await new Promise(setImmediate);
  }));
