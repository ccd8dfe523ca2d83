import { AsyncResource } from "node:async_hooks";
import { setImmediate as nextTick } from "node:timers/promises";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  keep,
  memory,
  memoryDuring,
  ones,
  scope,
  type Tensor,
  TensorDisposedError,
  TensorError,
  zeros,
} from "./index.ts";

let before: { tensors: number; bytes: number };
beforeEach(() => {
  before = memory();
});
afterEach(() => expect(memory(), "this test left tensors behind").toEqual(before));

const isAlive = (tensor: Tensor): boolean => {
  try {
    return tensor.length >= 0;
  } catch (error) {
    expect(error).toBeInstanceOf(TensorDisposedError);
    return false;
  }
};

describe("scope", () => {
  it("frees the tensors that were created in it", () => {
    scope(() => {
      const x = ones([10]);
      x.add(x).mul(2);
      expect(memory().tensors).toBe(before.tensors + 3);
      expect(memory().bytes).toBe(before.bytes + 3 * 40);
    });
  });

  it("frees its tensors after an error, and passes the error on", () => {
    expect(() =>
      scope(() => {
        ones([3]);
        throw new Error("mine");
      }),
    ).toThrow("mine");
  });

  it("frees its tensors when an async function has settled, with a value or an error", async () => {
    let inside: Tensor | undefined;
    const waiting = scope(async () => {
      inside = ones([3]);
      await nextTick();
      return inside.sum().item();
    });
    expect(isAlive(inside!)).toBe(true);
    expect(await waiting).toBe(3);
    expect(isAlive(inside!)).toBe(false);

    const failing = scope(async () => {
      ones([3]);
      await nextTick();
      ones([4]);
      throw new Error("later");
    });
    await expect(failing).rejects.toThrow("later");
  });

  it("moves the tensors that it returns to the enclosing scope, at any depth", () => {
    scope(() => {
      const result = scope(() => {
        const lost = ones([1]);
        return {
          a: lost.add(1),
          list: [lost.add(2), { deep: lost.add(3) }],
          map: new Map([["k", lost.add(4)]]),
          set: new Set([lost.add(5)]),
          lost: new WeakRef(lost),
        };
      });
      const survivors = [
        result.a,
        result.list[0] as Tensor,
        (result.list[1] as { deep: Tensor }).deep,
        result.map.get("k")!,
        [...result.set][0]!,
      ];
      expect(survivors.map((x) => x.item())).toEqual([2, 3, 4, 5, 6]);
      expect(isAlive(result.lost.deref()!)).toBe(false);
      expect(memory().tensors).toBe(before.tensors + 5);
    });
  });

  it("accepts a result that contains itself", () => {
    scope(() => {
      const knot = scope(() => {
        const circular: { x: Tensor; self?: unknown } = { x: ones([1]) };
        circular.self = circular;
        return circular;
      });
      expect(isAlive(knot.x)).toBe(true);
    });
  });

  it("finds tensors in a result of any size", () => {
    const [tensor, ...others] = scope(() => {
      const kept = [ones([2]), ones([2]), ones([2])];
      const numbers = Array.from({ length: 300_000 }, (_, i) => [i, i] as const);
      return [
        kept[0]!,
        Object.fromEntries([...numbers, ["kept", kept[1]]]),
        new Map<number, unknown>([...numbers, [0, kept[2]]]),
      ] as const;
    });
    const [second, third] = [others[0]["kept"], others[1].get(0)] as Tensor[];
    for (const each of [tensor, second!, third!]) {
      expect(isAlive(each)).toBe(true);
      each.dispose();
    }
  });

  it("accepts a tensor that is returned twice", () => {
    scope(() => {
      const [a, b] = scope(() => {
        const x = ones([1]);
        return [x, x] as const;
      });
      expect(a).toBe(b);
    });
  });

  it("without an enclosing scope, returns tensors that live until dispose", () => {
    const x = scope(() => ones([2]));
    expect(isAlive(x)).toBe(true);
    x.dispose();
    expect(isAlive(x)).toBe(false);
  });

  it("does not free tensors of the enclosing scope", () => {
    scope(() => {
      const outer = ones([1]);
      scope(() => outer.add(1));
      expect(outer.item()).toBe(1);
    });
  });

  it("keeps the tensors of two interleaved async scopes apart", async () => {
    const order: string[] = [];
    const created: Record<string, Tensor[]> = { a: [], b: [] };
    const make = (name: string) => created[name]!.push(ones([1]));
    let releaseA = () => {};
    const gate = new Promise<void>((resolve) => {
      releaseA = resolve;
    });

    const a = scope(async () => {
      make("a");
      await nextTick();
      make("a"); // while b is open
      await gate;
      order.push("a goes on");
      make("a"); // after b has ended
      expect(created["a"]!.map(isAlive)).toEqual([true, true, true]);
      expect(created["b"]!.map(isAlive)).toEqual([false, false]);
    });
    const b = scope(async () => {
      make("b");
      await nextTick();
      await nextTick();
      make("b");
    });
    await b;
    order.push("b has ended");
    releaseA();
    await a;
    expect(order).toEqual(["b has ended", "a goes on"]);
    expect([...created["a"]!, ...created["b"]!].some(isAlive)).toBe(false);
  });

  it("does not own tensors that its work creates after its end; the enclosing scope does", async () => {
    await scope(async () => {
      let late: (() => Tensor) | undefined;
      scope(() => {
        const context = new AsyncResource("late");
        late = () => context.runInAsyncScope(() => ones([1]));
      });
      const x = late!();
      await nextTick();
      expect(isAlive(x)).toBe(true);
    });
  });

  it("counts the memory of views once", () => {
    scope(() => {
      const x = zeros([100]);
      x.view(10, 10).narrow(0, 0, 5);
      expect(memory()).toEqual({ tensors: before.tensors + 3, bytes: before.bytes + 400 });
    });
  });

  it("keeps memory that a view still uses", () => {
    scope(() => {
      const x = ones([4]);
      const half = x.narrow(0, 0, 2);
      x.dispose();
      expect(half.sum().item()).toBe(2);
    });
  });
});

describe("keep", () => {
  it("takes a tensor out of its scope, so that it lives until dispose", () => {
    // A scope does not see the tensors in a returned function.
    const find = scope(() => {
      const x = keep(ones([2]));
      expect(x.keep()).toBe(x);
      return () => x;
    });
    scope(() => {});
    expect(isAlive(find())).toBe(true);
    find().dispose();
    expect(isAlive(find())).toBe(false);
  });

  it("throws for a disposed tensor", () => {
    const x = ones([1]);
    x.dispose();
    expect(() => keep(x)).toThrow(TensorDisposedError);
    const find = scope(() => {
      const y = ones([1]);
      return () => y;
    });
    expect(() => keep(find())).toThrow(TensorDisposedError);
  });
});

describe("dispose", () => {
  it("frees at once; a second call does nothing", () => {
    const x = ones([5]);
    x.dispose();
    x.dispose();
    x[Symbol.dispose]();
  });

  it("is called by `using`", () => {
    let seen: Tensor;
    {
      using x = ones([5]);
      seen = x;
      expect(isAlive(seen)).toBe(true);
    }
    expect(isAlive(seen)).toBe(false);
  });

  it("shows in a log, and printing a disposed tensor is not an error", () => {
    const x = ones([2, 3]);
    expect(inspect({ x })).toBe("{ x: Tensor(f32[2, 3], cpu) }");
    x.dispose();
    expect(inspect({ x })).toBe("{ x: Tensor(disposed) }");
  });

  it("can be called inside a scope", () => {
    scope(() => {
      using x = ones([5]);
      x.add(1).dispose();
    });
  });

  it("makes every later use an error that names the operator, and never another tensor", () => {
    scope(() => {
      const x = ones([2]);
      x.dispose();
      const y = zeros([2]); // reuses the slot in the native table
      expect(() => x.add(y)).toThrow(TensorDisposedError);
      expect(() => x.add(y)).toThrow(/aten::add\.Tensor.*"self" has been disposed/);
      expect(() => y.add(x)).toThrow(/aten::add\.Tensor.*"other" has been disposed/);
      expect(() => x.shape).toThrow(/shape.*disposed/);
      expect(() => x.backward()).toThrow(/backward.*disposed/);
      expect(y.sum().item()).toBe(0);
    });
  });
});

describe("memoryDuring", () => {
  it("says what tensors take after each allocation, without those that were there before", async () => {
    const old = ones([100]);
    const counted = await memoryDuring(() => {
      old.dispose();
      const x = zeros([1000]);
      x.neg().dispose();
      zeros([500]).dispose();
      x.dispose();
      zeros([250]).dispose();
    });
    expect(counted).toEqual([4000, 8000, 6000, 1000]);
    const inBackward = await memoryDuring(() =>
      scope(() => zeros([1000], { requiresGrad: true }).square().sum().backward()),
    );
    expect(Math.max(...inBackward)).toBeGreaterThan(12_000); // x, its square, and a gradient
  });

  it("counts once at a time, and no longer after an error", async () => {
    const twice = memoryDuring(() => memoryDuring(() => {}));
    await expect(twice).rejects.toThrow(new TensorError("countMemory: the memory of tensors is being counted already"));
    expect(await memoryDuring(() => zeros([2]).dispose())).toEqual([8]);
  });
});
