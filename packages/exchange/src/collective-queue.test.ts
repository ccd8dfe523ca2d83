import type { Collectives, Group, PointToPoint } from "@terse/collectives";
import { describe, expect, expectTypeOf, it } from "vitest";
import { enterQueue, type QueuedGroup } from "./collective-queue.ts";

type Operations = Collectives & PointToPoint & Pick<Group, "split">;

/** Arguments of every operation. A new operation of a group is a type error here until it is listed. */
const operations: { [Name in keyof Operations]: Parameters<Operations[Name]> } = {
  allReduce: [Float32Array.of(1), "max", { packed: false }],
  reduceScatter: [[Float32Array.of(2)], "min", {}],
  allGather: [[Float32Array.of(3)], {}],
  allToAll: [[Uint8Array.of(4)], [Uint8Array.of(5)], { note: 6, even: true }],
  broadcast: [Uint8Array.of(7), 1, {}],
  gather: [Uint8Array.of(8), 1, [Uint8Array.of(9)], {}],
  scatter: [Uint8Array.of(10), 1, [Uint8Array.of(11)], {}],
  send: [Uint8Array.of(12), 1, {}],
  recv: [Uint8Array.of(13), 1, {}],
  barrier: [{}],
  split: [1, 2],
};

/** A group that only writes down its calls, and resolves each with the name of its operation. */
function recorder(): { group: Group; calls: unknown[][] } {
  const calls: unknown[][] = [];
  const record =
    (name: string) =>
    async (...given: unknown[]) => {
      calls.push([name, ...given]);
      return name;
    };
  const names = Object.keys(operations).map((name) => [name, record(name)]);
  return { group: { rank: 1, size: 3, ...Object.fromEntries(names) } as Group, calls };
}

/** An operation with an id that the list of calls shows: a broadcast of one number. */
const call = (place: QueuedGroup, id: number) => place.broadcast(Uint8Array.of(id), 0);
const ids = (calls: readonly unknown[][]) => calls.map(([, x]) => (x as Uint8Array)[0]);
const settled = () => new Promise((done) => setImmediate(done));

describe("a place in the queue of a group", () => {
  it("has every collective and every message between two ranks", () => {
    expectTypeOf<QueuedGroup>().toExtend<Collectives & PointToPoint>();
    expectTypeOf<QueuedGroup>().toExtend<Operations>();
    const { group } = recorder();
    const place = enterQueue(group);
    expect(place).toMatchObject({ group, rank: 1, size: 3 });
  });

  it("calls at once when it is the first", () => {
    const { group, calls } = recorder();
    const place = enterQueue(group);
    expect(place.waits).toBe(false);
    void call(place, 1);
    void call(place, 2);
    expect(ids(calls)).toEqual([1, 2]);
  });

  it.each(["at once", "after waiting"])("passes on arguments and results of all operations, %s", async (when) => {
    const { group, calls } = recorder();
    const before = enterQueue(group);
    if (when === "at once") before.leave();
    const place = enterQueue(group);
    const pending = Object.entries(operations).map(async ([name, given]) => {
      const operation = place[name as keyof Operations] as (...given: unknown[]) => Promise<unknown>;
      expect(await operation.apply(place, given)).toBe(name);
    });
    expect(calls).toHaveLength(when === "at once" ? pending.length : 0);
    before.leave();
    await Promise.all(pending);
    expect(calls).toEqual(Object.entries(operations).map(([name, given]) => [name, ...given]));
    for (const [i, given] of Object.values(operations).entries())
      for (const [k, argument] of given.entries()) expect(calls[i]![k + 1]).toBe(argument); // not a copy
  });

  it("rejects with the operation's error, and makes the calls after it", async () => {
    const { group, calls } = recorder();
    const failing = { ...group, barrier: async () => Promise.reject(new Error("a rank is lost")) };
    const before = enterQueue(failing);
    const place = enterQueue(failing);
    const failed = expect(place.barrier()).rejects.toThrow("a rank is lost");
    const next = call(place, 1);
    before.leave();
    await Promise.all([failed, next]);
    expect(ids(calls)).toEqual([1]);
  });
});

describe("places of one group", () => {
  it("call in the order in which they entered, not in the order of the calls", async () => {
    const { group, calls } = recorder();
    const [a, b, c] = [enterQueue(group), enterQueue(group), enterQueue(group)];
    const pending = [call(c, 5), call(b, 3), call(c, 6), call(a, 1), call(b, 4), call(a, 2)];
    await settled();
    expect(ids(calls)).toEqual([1, 2]);
    a.leave();
    await settled();
    expect(ids(calls)).toEqual([1, 2, 3, 4]);
    b.leave();
    await Promise.all(pending);
    expect(ids(calls)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("wait until all places before them have left", async () => {
    const { group } = recorder();
    const [a, b, c] = [enterQueue(group), enterQueue(group), enterQueue(group)];
    expect([a, b, c].map(({ waits }) => waits)).toEqual([false, true, true]);
    let begun = "";
    void b.begins.then(() => (begun += "b"));
    void c.begins.then(() => (begun += "c"));
    await settled();
    expect(begun).toBe("");
    a.leave();
    a.leave(); // once more changes nothing
    await settled();
    expect([a, b, c].map(({ waits }) => waits)).toEqual([false, false, true]);
    expect(begun).toBe("b");
    b.leave();
    await settled();
    expect(c.waits).toBe(false);
    expect(begun).toBe("bc");
  });

  it("keep the order of calls that wait and of calls that come as soon as the place is the first", async () => {
    for (let microtasks = 0; microtasks < 12; microtasks++) {
      const { group, calls } = recorder();
      const [a, b] = [enterQueue(group), enterQueue(group)];
      const waiting = [call(b, 1), call(b, 2), call(b, 3)];
      a.leave();
      for (let i = 0; i < microtasks; i++) await undefined;
      await Promise.all([...waiting, call(b, 4), call(b, 5)]);
      expect(ids(calls), `${microtasks} microtasks later`).toEqual([1, 2, 3, 4, 5]);
    }
  });

  it("make the calls of a place that leaves while it waits, and then those of the next", async () => {
    const { group, calls } = recorder();
    const [a, b, c] = [enterQueue(group), enterQueue(group), enterQueue(group)];
    const pending = [call(c, 3), call(b, 2)];
    b.leave();
    await settled();
    expect([b.waits, c.waits]).toEqual([true, true]);
    pending.push(call(a, 1));
    a.leave();
    await Promise.all(pending);
    expect(ids(calls)).toEqual([1, 2, 3]);
  });

  it("pass over a place that is given up without a call, but not over the places before it", async () => {
    const { group, calls } = recorder();
    const [a, b, c] = [enterQueue(group), enterQueue(group), enterQueue(group)];
    b.leave();
    const pending = call(c, 1);
    await settled();
    expect(c.waits).toBe(true);
    expect(calls).toEqual([]);
    a.leave();
    await pending;
    expect(ids(calls)).toEqual([1]);
  });

  it("start anew when all have left", async () => {
    const { group } = recorder();
    const [a, b] = [enterQueue(group), enterQueue(group)];
    b.leave();
    a.leave();
    await settled();
    expect(enterQueue(group).waits).toBe(false);
  });

  it("do not wait for places of another group", () => {
    const [one, other] = [recorder(), recorder()];
    enterQueue(one.group);
    expect(enterQueue(one.group).waits).toBe(true);
    expect(enterQueue(other.group).waits).toBe(false);
  });
});
