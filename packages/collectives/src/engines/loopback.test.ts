import { once } from "node:events";
import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { CollectiveError, RankLostError } from "../errors.ts";
import type { NativeGroup } from "../native-group.ts";
import { engineContract } from "../testing/engine-contract/engine-contract.ts";
import { type Fault, loopback } from "./loopback.ts";

engineContract("loopback", async (size) => loopback(size));

describe("a loopback world", () => {
  it("refuses a size below 1 or with a fraction", () => {
    expect(() => loopback(0)).toThrow("loopback: the size must be a whole number from 1 on, and is 0");
    expect(() => loopback(2.5)).toThrow(RangeError);
  });

  it("refuses a timeout that is not above 0", () => {
    for (const timeoutSeconds of [-1, 0, Number.NaN])
      expect(() => loopback(2, { timeoutSeconds })).toThrow(
        `timeoutSeconds must be more than 0, and is ${timeoutSeconds}`,
      );
  });

  it("refuses faults with impossible values", () => {
    const refused = (fault: unknown) => expect(() => loopback(2, { faults: [fault as Fault] }));
    refused({ kind: "delay", rank: 2, milliseconds: 1 }).toThrow("loopback: a fault must name ranks from 0 to 1");
    refused({ kind: "loss", rank: 1, at: 1, to: 5 }).toThrow("loopback: a fault must name ranks from 0 to 1");
    refused({ kind: "death", rank: 1 }).toThrow("a fault needs the number of a collective in `at`");
    refused({ kind: "fire", rank: 1, at: 1 }).toThrow("a fault must be one of delay, loss, death");
    refused({ kind: "delay", rank: 1, milliseconds: -1 }).toThrow("a fault must delay by 0 milliseconds or more");
  });

  it("reports to every rank which one died", async () => {
    const groups = loopback(4, { faults: [{ kind: "death", rank: 2, at: 3 }] });
    const errors = await Promise.all(
      groups.map(async (group) => {
        for (let k = 0; k < 5; k++) {
          try {
            await group.allReduce(new Float32Array(200_000));
          } catch (error) {
            return [k, error] as const;
          }
        }
        return [-1, undefined] as const;
      }),
    );
    for (const [k, error] of errors) {
      expect(error).toBeInstanceOf(RankLostError);
      expect((error as RankLostError).rank).toBe(2);
      // Rank 2 has finished its second operation. Another rank may still have been in that one, and misses its last
      // messages.
      expect([1, 2]).toContain(k);
    }
    await Promise.all(groups.map((group) => group.close()));
  });

  it("gets the same results when ranks are late", async () => {
    const groups = loopback(3, {
      faults: [
        { kind: "delay", rank: 1, milliseconds: 20 },
        { kind: "delay", rank: 2, at: 2, milliseconds: 30 },
      ],
    });
    const xs = groups.map(({ rank }) => new Int32Array(10).fill(rank));
    await Promise.all(
      groups.flatMap((group, rank) => [group.allReduce(xs[rank]!), group.allReduce(xs[rank]!, "max"), group.barrier()]),
    );
    for (const x of xs) expect([...x]).toEqual(Array(10).fill(3));
    await Promise.all(groups.map((group) => group.close()));
  });

  it("fails an operation that a rank does not call in time", async () => {
    const groups = loopback(2, { timeoutSeconds: 0.05 });
    const error = await groups[0]!.allReduce(new Float32Array(4)).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(CollectiveError);
    expect((error as CollectiveError).reason).toBe("timeout");
    expect((error as CollectiveError).message).toBe(
      "all-reduce number 1 failed on rank 0: rank 1 did not take part in time; check what it is doing, or raise timeoutSeconds",
    );
    await expect(groups[1]!.barrier()).rejects.toThrow("rank 1 did not take part in time");
    for (const group of groups) await group.close();
  });

  it("fails a split that a rank does not call in time", async () => {
    const groups = loopback(3, { timeoutSeconds: 0.05 });
    const outcomes = await Promise.allSettled(groups.slice(1).map((group) => group.split(0)));
    const [error, same] = outcomes.map((outcome) => (outcome as PromiseRejectedResult).reason);
    expect(error).toBeInstanceOf(CollectiveError);
    expect([error.reason, error.message]).toEqual([
      "timeout",
      "rank 0 did not reach world/split-0 within 0.05 s; check what it does, or raise timeoutSeconds",
    ]);
    expect(same).toBe(error);
    await expect(groups[0]!.split(0)).rejects.toBe(error);
    for (const group of groups) await group.close();
  });

  it("loses a message unnoticed by its sender, and the receiver's error names the sender", async () => {
    const groups = loopback(3, { timeoutSeconds: 5, faults: [{ kind: "loss", rank: 1, at: 2, to: 0 }] });
    await Promise.all(groups.map((group) => group.allReduce(new Float32Array(4))));
    const [waiting, ...served] = groups.map((group) => group.allGather(groups.map(() => new Float32Array(4))));
    await Promise.all(served); // rank 1 too
    const error = (await waiting!.catch((each: unknown) => each)) as CollectiveError;
    expect(error.reason).toBe("timeout");
    expect(error.message).toBe(
      "all-gather number 2 failed on rank 0: rank 1 did not take part in time; check what it is doing, or raise timeoutSeconds",
    );
    for (const group of groups) await expect(group.barrier()).rejects.toBe(error);
    for (const group of groups) await group.close();
  });

  it("counts only collectives in a fault's `at`", async () => {
    const groups = loopback(2, { faults: [{ kind: "death", rank: 0, at: 2 }] });
    for (let k = 0; k < 3; k++)
      await Promise.all([groups[0]!.send(Int8Array.of(k), 1), groups[1]!.recv(new Int8Array(1), 0)]);
    await Promise.all(groups.map((group) => group.barrier()));
    await Promise.all(groups.map((group) => expect(group.barrier()).rejects.toThrow(RankLostError)));
    for (const group of groups) await group.close();

    // In a broadcast from rank 1, rank 0 sends nothing to rank 2. Its later send is no collective, and is not lost.
    const more = loopback(3, { timeoutSeconds: 300, faults: [{ kind: "loss", rank: 0, at: 1, to: 2 }] });
    await Promise.all(more.map((group) => group.broadcast(new Int8Array(1), 1)));
    await Promise.all([more[0]!.send(new Int8Array(1), 2), more[2]!.recv(new Int8Array(1), 0)]);
    await Promise.all(more.map((group) => group.close()));
  });

  it("does not count a refused call among those that every rank must make before it closes", async () => {
    const [zero, one] = loopback(2) as unknown as [NativeGroup, NativeGroup];
    const odd = { pointer: 0n, length: 0, dtype: "f8" as never, device: "cpu" };
    await expect(zero.allReduce(odd)).rejects.toThrow("unknown dtype f8");
    await Promise.all([zero.barrier(), one.barrier()]);
    const left = one.close();
    await sleep(20);
    expect(zero.failure).toBeUndefined();
    await Promise.all([left, zero.close()]);
  });

  it("leaves no thread and no file descriptor behind, in whatever way its worlds end", async () => {
    const count = () => readdirSync("/proc/self/task").length + readdirSync("/proc/self/fd").length;
    const round = async (k: number) => {
      const groups = loopback(3, { emulateLink: "1gbit" });
      const cancel = new AbortController();
      const pending = groups.map((group, rank) =>
        group.allReduce(new Float32Array(100_000), "sum", rank === 0 ? { signal: cancel.signal } : {}),
      );
      const receive = groups[0]!.recv(new Float32Array(3), 1).catch(() => {});
      if (k % 2 === 0) await Promise.all(pending);
      else cancel.abort();
      groups[2]!.abort("enough");
      await Promise.allSettled([...pending, receive]);
      await Promise.all(groups.map((group) => group.close()));
    };
    for (let k = 0; k < 5; k++) await round(k);
    const before = count();
    for (let k = 0; k < 200; k++) await round(k);
    // Node's own threads may start and end meanwhile.
    expect(count()).toBeLessThanOrEqual(before + 8);
  });

  it("ends with its worker thread while operations are pending", async () => {
    const code = `
      import(${JSON.stringify(new URL("../index.ts", import.meta.url).href)}).then(({ loopback }) => {
        globalThis.groups = loopback(3);
        groups[0].allReduce(new Float32Array(1 << 20)).catch(() => {});
        groups[1].recv(new Float32Array(1 << 20), 0).catch(() => {});
        require("node:worker_threads").parentPort.postMessage("pending");
      });`;
    const here = loopback(2);
    for (let k = 0; k < 5; k++) {
      const worker = new Worker(code, { eval: true, execArgv: ["--conditions=@terse/source"] });
      expect(await once(worker, "message")).toEqual(["pending"]);
      await worker.terminate();
    }
    await Promise.all(here.map((group) => group.barrier())); // other groups go on
    await Promise.all(here.map((group) => group.close()));
  });

  it("ends with its worker thread while operations start and end", async () => {
    const code = `
      import(${JSON.stringify(new URL("../index.ts", import.meta.url).href)}).then(async ({ loopback }) => {
        const groups = loopback(3);
        require("node:worker_threads").parentPort.postMessage("busy");
        for (;;) await Promise.all(groups.flatMap((group) => Array.from({ length: 20 }, () => group.allReduce(new Float32Array(10)))));
      });`;
    const terminate = async (k: number) => {
      const worker = new Worker(code, { eval: true, execArgv: ["--conditions=@terse/source"] });
      await once(worker, "message");
      await sleep(k % 8);
      await worker.terminate();
    };
    for (let k = 0; k < 24; k += 4) await Promise.all([0, 1, 2, 3].map((i) => terminate(k + i)));
  });
});
