import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { engineContract } from "../engine-contract.ts";
import { CollectiveError, RankLostError } from "../errors.ts";
import { loopback } from "./loopback.ts";

engineContract("loopback", async (size) => loopback(size));

describe("a loopback world", () => {
  it("refuses a size that is no size", () => {
    expect(() => loopback(0)).toThrow("loopback: the size must be 1 or more, and is 0");
    expect(() => loopback(2.5)).toThrow(RangeError);
    expect(() => loopback(2, { delays: [1] })).toThrow("delays must have one entry per rank");
  });

  it("tells every rank which one vanished", async () => {
    const groups = loopback(4, { lose: { rank: 2, at: 3 } });
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
      // Rank 2 has finished its second operation; another may still have been in it, and misses what was under way.
      expect([1, 2]).toContain(k);
    }
    await Promise.all(groups.map((group) => group.close()));
  });

  it("gets the same results however late a rank comes", async () => {
    const groups = loopback(3, { delays: [0, 20, 3] });
    const xs = groups.map(({ rank }) => new Int32Array(10).fill(rank));
    await Promise.all(
      groups.flatMap((group, rank) => [group.allReduce(xs[rank]!), group.allReduce(xs[rank]!, "max"), group.barrier()]),
    );
    for (const x of xs) expect([...x]).toEqual(Array(10).fill(3));
    await Promise.all(groups.map((group) => group.close()));
  });

  it("gives up on a rank that does not come in time", async () => {
    const groups = loopback(2, { timeoutSeconds: 0.05 });
    const error = await groups[0]!.allReduce(new Float32Array(4)).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(CollectiveError);
    expect((error as CollectiveError).reason).toBe("timeout");
    expect((error as CollectiveError).message).toBe(
      "all-reduce number 1 failed on rank 0: rank 1 did not come in time",
    );
    await expect(groups[1]!.barrier()).rejects.toThrow("rank 1 did not come in time");
    for (const group of groups) await group.close();
  });

  it("ends with its worker thread, whatever is pending", async () => {
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
    await Promise.all(here.map((group) => group.barrier())); // others are not touched
    await Promise.all(here.map((group) => group.close()));
  });
});
