import { setImmediate as nextTick } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { memory, noGrad, ones, randn, scope, type Tensor, TensorError, tensor } from "./index.ts";
import { collectGarbage } from "./testing/collect-garbage.ts";

const values = async (x: Tensor) => [...((await x.toTypedArray()) as Float32Array)];

describe("backward", () => {
  it("adds dloss/dx to the grad of every leaf", () =>
    scope(async () => {
      const x = tensor([1, 2, 3], { requiresGrad: true });
      const y = tensor([4, 5, 6], { requiresGrad: true });
      await x.mul(x).mul(y).sum().backward(); // x²y: 2xy, x²
      expect(await values(x.grad!)).toEqual([8, 20, 36]);
      expect(await values(y.grad!)).toEqual([1, 4, 9]);
      await x.sum().backward();
      expect(await values(x.grad!)).toEqual([9, 21, 37]);
    }));

  it("needs `gradient` for a tensor of several elements", () =>
    scope(async () => {
      const x = tensor([1, 2], { requiresGrad: true });
      await x.mul(3).backward({ gradient: tensor([1, 10]) });
      expect(await values(x.grad!)).toEqual([3, 30]);
    }));

  it("leaves the event loop free while it runs", () =>
    scope(async () => {
      const x = randn([700, 700], { requiresGrad: true });
      let y: Tensor = x;
      for (let i = 0; i < 12; i++) y = y.mm(x).mul(0.03);
      let done = false;
      const finished = y
        .sum()
        .backward()
        .then(() => {
          done = true;
        });
      let ticks = 0;
      while (!done) {
        await nextTick();
        ticks++;
      }
      await finished;
      expect(ticks).toBeGreaterThan(20); // on this thread it would end after one
    }));

  it("runs several in order; when one fails, the others are not affected", () =>
    scope(async () => {
      const x = tensor([2], { requiresGrad: true });
      const settled: string[] = [];
      const note = (name: string, promise: Promise<void>) =>
        promise.then(
          () => settled.push(`${name} done`),
          (error) => settled.push(`${name} failed: ${error.constructor.name}`),
        );
      await Promise.all([
        note(
          "first",
          x
            .mul(
              randn([500, 500])
                .mm(randn([500, 500]))
                .sum()
                .mul(0),
            )
            .sum()
            .backward(),
        ),
        note("second", ones([3]).backward()),
        note("third", x.mul(5).sum().backward()),
        note("fourth", x.mul(7).sum().backward()),
      ]);
      expect(settled).toEqual(["first done", "second failed: TensorError", "third done", "fourth done"]);
      expect(await values(x.grad!)).toEqual([12]);
    }));

  it("rejects with libtorch's message, the tensor, and the C++ trace as cause", () =>
    scope(async () => {
      const error = await ones([2, 3])
        .backward()
        .catch((e) => e);
      expect(error).toBeInstanceOf(TensorError);
      expect(error.message).toMatch(/^backward\(self: f32\[2, 3\]\): .*does not require grad/);
      expect(error.message).not.toContain("frame #");
      expect(error.cause).toContain("Exception raised from");
    }));

  it("frees the graph: a second backward is refused, unless the first had retainGraph", () =>
    scope(async () => {
      const x = tensor([3], { requiresGrad: true });
      const kept = x.mul(x).sum();
      await kept.backward({ retainGraph: true });
      await kept.backward();
      expect(await values(x.grad!)).toEqual([12]);
      await expect(kept.backward()).rejects.toThrow(/second time/);
    }));

  it("continues when the scope of its tensors ends before it", async () => {
    await collectGarbage();
    const x = tensor([3], { requiresGrad: true });
    const before = memory().tensors;
    let pending: Promise<void> | undefined;
    scope(() => {
      pending = x
        .mul(
          randn([400, 400])
            .mm(randn([400, 400]))
            .abs()
            .sum(),
        )
        .sum()
        .backward();
    });
    await pending;
    expect(memory().tensors).toBe(before);
    using gradient = x.grad!;
    expect(gradient.item()).toBeGreaterThan(0);
    x.dispose();
  });
});

describe("grad", () => {
  it("is null at first, can be set to a view of another tensor, and backward adds into it", () =>
    scope(async () => {
      const x = tensor([1, 1], { requiresGrad: true });
      expect(x.grad).toBeNull();
      const flat = tensor([10, 20, 30, 40]);
      x.grad = flat.narrow(0, 1, 2);
      await x.mul(2).sum().backward();
      expect(await values(flat)).toEqual([10, 22, 32, 40]);
      x.grad = null;
      expect(x.grad).toBeNull();
    }));

  it("must have the tensor's shape and dtype", () =>
    scope(() => {
      const x = tensor([1, 1], { requiresGrad: true });
      expect(() => {
        x.grad = tensor([1, 2, 3]);
      }).toThrow(/f32\[3\] does not fit a tensor f32\[2\]/);
      expect(() => {
        x.grad = tensor([1, 2], { dtype: "f64" });
      }).toThrow(/f64\[2\] does not fit/);
    }));
});

describe("noGrad", () => {
  it("does not record, returns the result, and records again afterwards, also after an error", () =>
    scope(() => {
      const x = tensor([1], { requiresGrad: true });
      expect(noGrad(() => x.mul(2)).requiresGrad).toBe(false);
      expect(() =>
        noGrad(() => {
          throw new Error("inside");
        }),
      ).toThrow("inside");
      noGrad(() => noGrad(() => {}));
      expect(x.mul(2).requiresGrad).toBe(true);
    }));

  it("allows writing a leaf in place, which is an error while recording", () =>
    scope(() => {
      const x = tensor([1], { requiresGrad: true });
      expect(() => x.add_(1)).toThrow(/aten::add_\.Scalar.*leaf Variable that requires grad/);
      noGrad(() => x.add_(1));
      expect(x.item()).toBe(2);
    }));

  it("refuses an async function", async () => {
    // @ts-expect-error: the type refuses it too
    expect(() => noGrad(async () => {})).toThrow(/async/);
    // The promise is lost. If it rejects, that ends no process.
    expect(() => noGrad(() => randn([2]).sum().backward() as never)).toThrow(/async/);
    await new Promise(setImmediate);
  });
});
