import { AsyncResource } from "node:async_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keep, memory, ones, scope, type Tensor, TensorDisposedError, zeros } from "./index.ts";

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
  it("frees what was born in it", () => {
    scope(() => {
      const x = ones([10]);
      x.add(x).mul(2);
      expect(memory().tensors).toBe(before.tensors + 3);
      expect(memory().bytes).toBe(before.bytes + 3 * 40);
    });
  });

  it("frees what was born before an error, and passes the error on", () => {
    expect(() =>
      scope(() => {
        ones([3]);
        throw new Error("mine");
      }),
    ).toThrow("mine");
  });

  it("frees after an async function has settled, by a value or by an error", async () => {
    let inside: Tensor | undefined;
    const waiting = scope(async () => {
      inside = ones([3]);
      await turn();
      return inside.sum().item();
    });
    expect(isAlive(inside!)).toBe(true);
    expect(await waiting).toBe(3);
    expect(isAlive(inside!)).toBe(false);

    const failing = scope(async () => {
      ones([3]);
      await turn();
      ones([4]);
      throw new Error("later");
    });
    await expect(failing).rejects.toThrow("later");
  });

  it("gives what it returns to the scope around, at any depth", () => {
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

  it("follows a result that contains itself", () => {
    scope(() => {
      const knot = scope(() => {
        const made: { x: Tensor; self?: unknown } = { x: ones([1]) };
        made.self = made;
        return made;
      });
      expect(isAlive(knot.x)).toBe(true);
    });
  });

  it("gives the same tensor once, also when it is returned twice", () => {
    scope(() => {
      const [a, b] = scope(() => {
        const x = ones([1]);
        return [x, x] as const;
      });
      expect(a).toBe(b);
    });
  });

  it("lets what it returns outside any scope live until dispose", () => {
    const x = scope(() => ones([2]));
    expect(isAlive(x)).toBe(true);
    x.dispose();
    expect(isAlive(x)).toBe(false);
  });

  it("does not free what the scope around owns", () => {
    scope(() => {
      const outer = ones([1]);
      scope(() => outer.add(1));
      expect(outer.item()).toBe(1);
    });
  });

  it("keeps two interleaving async scopes apart", async () => {
    const order: string[] = [];
    const born: Record<string, Tensor[]> = { a: [], b: [] };
    const make = (name: string) => born[name]!.push(ones([1]));
    let releaseA = () => {};
    const gate = new Promise<void>((resolve) => {
      releaseA = resolve;
    });

    const a = scope(async () => {
      make("a");
      await turn();
      make("a"); // while b is open
      await gate;
      order.push("a goes on");
      make("a"); // after b has ended
      expect(born["a"]!.map(isAlive)).toEqual([true, true, true]);
      expect(born["b"]!.map(isAlive)).toEqual([false, false]);
    });
    const b = scope(async () => {
      make("b");
      await turn();
      await turn();
      make("b");
    });
    await b;
    order.push("b has ended");
    releaseA();
    await a;
    expect(order).toEqual(["b has ended", "a goes on"]);
    expect([...born["a"]!, ...born["b"]!].some(isAlive)).toBe(false);
  });

  it("gives what is born after its end, in work that it started, to the scope around", async () => {
    await scope(async () => {
      let late: (() => Tensor) | undefined;
      scope(() => {
        const context = new AsyncResource("late");
        late = () => context.runInAsyncScope(() => ones([1]));
      });
      const x = late!();
      await turn();
      expect(isAlive(x)).toBe(true);
    });
  });

  it("counts a view's memory once", () => {
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
  it("takes a tensor out of its scope until dispose", () => {
    // A function hides its tensor from the scope that it is returned from.
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

  it("of a disposed tensor is an error", () => {
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
  it("frees at once, and a second time does nothing", () => {
    const x = ones([5]);
    x.dispose();
    x.dispose();
    x[Symbol.dispose]();
  });

  it("comes with `using`", () => {
    let seen: Tensor;
    {
      using x = ones([5]);
      seen = x;
      expect(isAlive(seen)).toBe(true);
    }
    expect(isAlive(seen)).toBe(false);
  });

  it("shows in a log, where looking is no error", () => {
    const x = ones([2, 3]);
    expect(inspect({ x })).toBe("{ x: Tensor(f32[2, 3], cpu) }");
    x.dispose();
    expect(inspect({ x })).toBe("{ x: Tensor(disposed) }");
  });

  it("inside a scope leaves nothing for the scope to free", () => {
    scope(() => {
      using x = ones([5]);
      x.add(1).dispose();
    });
  });

  it("makes every later use an error that names the operator, and never another tensor", () => {
    scope(() => {
      const x = ones([2]);
      x.dispose();
      const y = zeros([2]); // takes over the slot in the native table
      expect(() => x.add(y)).toThrow(TensorDisposedError);
      expect(() => x.add(y)).toThrow(/aten::add\.Tensor.*"self" has been disposed/);
      expect(() => y.add(x)).toThrow(/aten::add\.Tensor.*"other" has been disposed/);
      expect(() => x.shape).toThrow(/shape.*disposed/);
      expect(() => x.backward()).toThrow(/backward.*disposed/);
      expect(y.sum().item()).toBe(0);
    });
  });
});
