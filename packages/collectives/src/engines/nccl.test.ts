import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { collectives, kinds } from "@terse/native-collectives";
import { afterAll, describe, expect, it } from "vitest";
import { copy } from "../copy.ts";
import { CollectiveError, RendezvousError } from "../errors.ts";
import type { Group } from "../group.ts";
import { type JoinOptions, joinWorld } from "../join-world.ts";
import type { NativeGroup } from "../native-group.ts";
import { engineContract } from "../testing/engine-contract/engine-contract.ts";
import { everyOperation } from "../testing/every-nccl-operation.ts";
import { counted, FakeNccl } from "../testing/fake-nccl.ts";
import { InProcessWorlds } from "../testing/in-process-worlds.ts";
import { ncclBytes } from "../testing/nccl-bytes.ts";
import { DeviceBuffer } from "./device-buffer.ts";
import { chooseDevice, findNccl, type NcclWorld } from "./nccl.ts";
import type { NcclOptions } from "./nccl-options.ts";

// All ranks are in this process, each on a device of its own. The library and the driver are fakes that really move
// data.
const fake = new FakeNccl();
const defaultLibrary = fake.build();
const streams = fake.streams();
const realLibrary = findRealLibrary();
const worlds = new InProcessWorlds();
afterAll(async () => {
  await worlds[Symbol.asyncDispose]();
  fake[Symbol.dispose]();
});

/** NVIDIA's library, where pip has installed it for the tests. */
function findRealLibrary(): string | undefined {
  try {
    const code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    const python = process.env["TERSE_PYTHON"] || "python3";
    const packages = execFileSync(python, ["-c", code], { encoding: "utf8", stdio: "pipe" }).trim();
    const file = join(packages, "nvidia", "nccl", "lib", "libnccl.so.2");
    return existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/** Options of every rank; `of` gives each rank its own for NCCL. */
type WorldOptions = JoinOptions & { of?: (rank: number) => NcclOptions };

function makeWorld(size: number, { of = () => defaultLibrary, ...rest }: WorldOptions = {}): Promise<Group[]> {
  return worlds.open("nccl", size, (rank) => ({ nccl: of(rank), ...rest }));
}

engineContract("nccl", (size) => makeWorld(size), {
  volumes: ncclBytes,
  headers: false,
  adds: (dtype) => dtype !== "i16",
  dividesSums: (ranks) => Math.log2(ranks) % 1 === 0,
  keepsNaN: false,
});

const everywhere = <T>(groups: readonly Group[], call: (group: Group, rank: number) => Promise<T>) =>
  Promise.all(groups.map((group) => call(group, group.rank)));
const close = (groups: readonly Group[]) => Promise.all(groups.map((group) => group.close()));
const errorsOf = async (calls: readonly Promise<unknown>[]) =>
  (await Promise.allSettled(calls)).map((outcome) => (outcome.status === "rejected" ? outcome.reason : undefined));

const everyOperationOn = async (groups: readonly Group[]) => void (await everywhere(groups, everyOperation));

async function withWorld(size: number, options: WorldOptions, run: (groups: Group[]) => Promise<void>): Promise<void> {
  const groups = await makeWorld(size, options);
  try {
    await run(groups);
  } catch (error) {
    groups[0]!.abort("the test has failed"); // so that the other ranks do not wait for it
    throw error;
  } finally {
    await close(groups);
  }
}

describe("a DeviceBuffer", () => {
  it.each([1, 2, 3, 4])("can be used in every operation, %i ranks", (n) => withWorld(n, {}, everyOperationOn));

  it("must be on this rank's device, and is not mixed with CPU memory in one operation", () =>
    withWorld(2, {}, async (groups) => {
      using x = new DeviceBuffer(groups[1]!, 4, "f32");
      expect(x.device).toBe("cuda:1");
      await expect(groups[0]!.allReduce(x)).rejects.toThrow(
        "allReduce: the memory is on cuda:1, and this rank's group is on cuda:0",
      );
      await expect(groups[1]!.allGather([x, new Float32Array(4)])).rejects.toThrow(
        "allGather: some memory is on cuda:1 and some on cpu",
      );
      await expect(x.write(new Float32Array(3))).rejects.toThrow("this DeviceBuffer has 16 bytes, and the array 12");
      await everywhere(groups, (group) => group.barrier());
      x.free();
      expect(() => x.pointer).toThrow("has been freed");
    }));

  it("can be registered where the library has registration", async () => {
    const aborts = streams.count(counted.aborts);
    await withWorld(2, {}, async (groups) => {
      const xs = groups.map((group) => new DeviceBuffer(group, 4, "f32"));
      await everywhere(groups, (_, rank) => xs[rank]!.register());
      await everywhere(groups, (_, rank) => xs[rank]!.write(Float32Array.of(1, 2, 3, rank)));
      await everywhere(groups, (group, rank) => group.allReduce(xs[rank]!));
      const sum = new Float32Array(4);
      await xs[1]!.read(sum);
      expect([...sum]).toEqual([2, 4, 6, 1]);
    });
    expect(streams.count(counted.aborts)).toBe(aborts); // no group was aborted
    const old = fake.build({ without: ["ncclCommRegister"] });
    await withWorld(1, { of: () => old }, async ([group]) => {
      using x = new DeviceBuffer(group!, 4, "f32");
      await expect(x.register()).rejects.toThrow("this version of NCCL cannot register memory");
      await group!.barrier();
    });
  });

  it("is deregistered in every group before it is freed", async () => {
    const [dangling, memory] = [streams.count(counted.dangling), streams.count(counted.memory)];
    await withWorld(2, {}, async (groups) => {
      const inner = await everywhere(groups, async (group) => (await group.split(0))!);
      const xs = groups.map((group) => new DeviceBuffer(group, 1000, "f32"));
      await everywhere(groups, (_, rank) => xs[rank]!.register());
      await everywhere(inner, (group, rank) => xs[rank]!.register(group));
      await everywhere(groups, (_, rank) => xs[rank]!.write(new Float32Array(1000)));
      const sums = [...groups, ...inner].map((group) => group.allReduce(xs[group.rank]!));
      for (const x of xs) x.free(); // takes effect after the sums
      await Promise.all(sums);
      while (streams.count(counted.memory) > memory + 2 * inner.length) await sleep(1);
      const ys = groups.map((group) => new DeviceBuffer(group, 4, "f32"));
      await everywhere(groups, (_, rank) => ys[rank]!.register());
      groups[0]!.abort("enough");
      for (const y of ys) y.free(); // the abort ends the registration
      expect(() => ys[0]!.pointer).toThrow("has been freed");
    });
    while (streams.count(counted.memory) > memory) await sleep(1);
    expect(streams.count(counted.dangling)).toBe(dangling);
  });

  it("can be registered only in groups of its own world, and a registration that fails ends the group on every rank", async () => {
    await withWorld(1, {}, ([group]) =>
      withWorld(1, {}, async ([other]) => {
        using x = new DeviceBuffer(group!, 4, "f32");
        await expect(x.register(other!)).rejects.toThrow("register it in a group of its own world");
      }),
    );
    const refusing = fake.build({ register: 3 });
    await withWorld(2, { of: () => refusing }, async (groups) => {
      const xs = groups.map((group) => new DeviceBuffer(group, 4, "f32"));
      const errors = await errorsOf(xs.map((x) => x.register()));
      for (const error of [...errors, ...(await errorsOf(groups.map((group) => group.barrier())))])
        expect([error.reason, error.message.replace(/rank 1/, "rank 0")]).toEqual([
          "device",
          "registration failed on rank 0: ncclCommRegister: internal error (no memory can be registered)",
        ]);
      for (const x of xs) x.free();
    });
  });

  it("is freed without waiting for pending operations, and only once", () =>
    withWorld(2, {}, async (groups) => {
      const other = new DeviceBuffer(groups[0]!, 1000, "f32");
      const { pointer } = other;
      const waiting = groups[0]!.allReduce(Float32Array.of(1));
      await sleep(20);
      other.free(); // if this waited, the other rank could never call its all-reduce
      const { handle } = (groups[0] as NativeGroup).world as NcclWorld;
      expect(() => collectives().ncclFree(handle, pointer)).toThrow("or it is already freed");
      await Promise.all([waiting, groups[1]!.allReduce(Float32Array.of(2))]);
    }));

  it("is freed after the operations on it that were called before, also those that have not started", async () => {
    const memory = streams.count(counted.memory);
    await withWorld(2, {}, async (groups) => {
      const xs = groups.map((group) => new DeviceBuffer(group, 4, "f32"));
      await everywhere(groups, (_, rank) => xs[rank]!.write(new Float32Array(4).fill(1 + rank)));
      const first = groups[0]!.split(0); // the operations after it wait for the other rank's call
      const sums = [groups[0]!.allReduce(xs[0]!), groups[0]!.broadcast(xs[0]!, 0)];
      xs[0]!.free();
      await sleep(50);
      const inner = [first, groups[1]!.split(0)];
      sums.push(groups[1]!.allReduce(xs[1]!), groups[1]!.broadcast(xs[1]!, 0));
      await Promise.all(sums);
      const sum = new Float32Array(4);
      await xs[1]!.read(sum);
      expect([...sum]).toEqual([3, 3, 3, 3]);
      xs[1]!.free();
      await close((await Promise.all(inner)) as Group[]);
    });
    while (streams.count(counted.memory) > memory) await sleep(1);
  });

  it("may have more than 2³¹ elements", () =>
    withWorld(1, {}, async ([group]) => {
      using x = new DeviceBuffer(group!, 1, "f32");
      const { pointer, device } = x;
      const long = { pointer, length: 2 ** 32 + 5, dtype: "f32", device } as const;
      await expect(group!.allReduce(long)).rejects.toThrow("is not memory of the device, all 4294967301 of it");
    }));

  it("is read after earlier work on the caller's stream, and does not block later work there", () =>
    withWorld(2, {}, async (groups) => {
      const [theirs, other] = [streams.create(), streams.create()];
      const xs = groups.map((group) => new DeviceBuffer(group, 8, "u8"));
      using after = new DeviceBuffer(groups[0]!, 8, "u8");
      await after.write(new Uint8Array(8));
      const on = (x: DeviceBuffer, stream: bigint) => ({
        pointer: x.pointer,
        length: x.length,
        dtype: x.dtype,
        device: x.device,
        stream,
      });
      streams.fill(theirs, xs[0]!.pointer, 8, 5, 40);
      const first = groups[0]!.allReduce(on(xs[0]!, theirs));
      await sleep(80); // it has started, and waits for the other rank
      streams.fill(theirs, after.pointer, 8, 1, 0);
      while ((await peek(after, groups[1]!))[0] !== 1) await sleep(1);
      const seen = new Uint8Array(8);
      streams.fill(other, xs[1]!.pointer, 8, 30, 40);
      await Promise.all([first, groups[1]!.allReduce(on(xs[1]!, other))]);
      for (const x of xs) {
        await x.read(seen);
        expect([...seen]).toEqual(Array(8).fill(35));
      }
      for (const x of xs) x.free();
    }));
});

/** Reads a buffer at once, by the idle stream of another rank's group. The fake devices share one memory. */
async function peek(memory: DeviceBuffer, group: Group): Promise<Uint8Array> {
  const to = new Uint8Array(memory.length);
  const { pointer, length } = memory;
  await (group as NativeGroup).runLocally("copy", { pointer, length, dtype: "u8", device: `cuda:${group.rank}` }, to);
  return to;
}

describe("a packed sum", () => {
  it.each([0, 1, 7, 8, 9, 64, 1003])("of %i bytes is the same as the sum of single bytes", (length) =>
    withWorld(3, {}, async (groups) => {
      const give = (rank: number) => Uint8Array.from({ length }, (_, i) => ((i * 7 + rank * 3) % 5) + 1);
      const want = give(0).map((x, i) => x + give(1)[i]! + give(2)[i]!);
      const xs = groups.map(({ rank }) => give(rank));
      const devices = groups.map((group) => new DeviceBuffer(group, length, "u8"));
      await everywhere(groups, (_, rank) => devices[rank]!.write(give(rank)));
      await everywhere(groups, (group, rank) => group.allReduce(xs[rank]!, "sum", { packed: true }));
      await everywhere(groups, (group, rank) => group.allReduce(devices[rank]!, "sum", { packed: true }));
      for (const { rank } of groups) {
        expect(xs[rank]).toEqual(want);
        await devices[rank]!.read(xs[rank]!);
        expect(xs[rank]).toEqual(want);
        devices[rank]!.free();
      }
    }),
  );

  it("takes only sums of u8 that begin at a multiple of 8 bytes", () =>
    withWorld(1, {}, async ([group]) => {
      await expect(group!.allReduce(new Int32Array(2), "sum", { packed: true })).rejects.toThrow("only a sum of u8");
      await expect(group!.allReduce(new Uint8Array(2), "max", { packed: true })).rejects.toThrow("only a sum of u8");
      using x = new DeviceBuffer(group!, 16, "u8");
      const odd = { pointer: x.pointer + 4n, length: 8, dtype: "u8", device: x.device } as const;
      await expect(group!.allReduce(odd, "sum", { packed: true })).rejects.toThrow(
        "must begin at a multiple of 8 bytes",
      );
      await group!.barrier();
    }));
});

describe("a group over NCCL", () => {
  it.each([0, 1, 2, 7])("waits for calls that NCCL reports as in progress, %i times each", (progress) => {
    const library = fake.build({ progress });
    return withWorld(3, { of: () => library }, everyOperationOn);
  });

  it.each([21800, 21903, 22203, 22403, 22505, 22606, 22705, 22809, 22907, 23007, 23102])(
    "works with version %i",
    (version) => {
      const library = fake.build({ version });
      return withWorld(2, { of: () => library }, async (groups) => {
        const xs = groups.map(({ rank }) => Int32Array.of(rank, 5));
        await everywhere(groups, (group, rank) => group.allReduce(xs[rank]!));
        for (const x of xs) expect([...x]).toEqual([1, 10]);
      });
    },
  );

  it("works without the functions that an older library lacks", () => {
    const absent = [
      "ncclCommSplit",
      "ncclAlltoAll",
      "ncclMemAlloc",
      "ncclMemFree",
      "ncclCommRegister",
      "ncclCommDeregister",
    ];
    const library = fake.build({ version: 21805, without: absent });
    expect(findNccl(library)).toMatchObject({ available: true, version: "2.18.5", absent });
    return withWorld(3, { of: () => library }, everyOperationOn);
  });

  it("fails on every rank at the deadline when a rank does not call an operation, and leaves memory unchanged", () =>
    withWorld(3, { timeoutSeconds: 2 }, async (groups) => {
      const xs = groups.map(({ rank }) => new Float32Array(1000).fill(rank));
      using device = new DeviceBuffer(groups[0]!, 1000, "f32");
      await device.write(new Float32Array(1000)); // a copy is no collective, and is not counted
      const waiting = [groups[0]!.allReduce(xs[0]!), groups[1]!.allReduce(xs[1]!), groups[0]!.allReduce(device)];
      const errors = await errorsOf(waiting);
      for (const error of [...errors, ...(await errorsOf(groups.map((group) => group.barrier())))]) {
        expect(error).toBeInstanceOf(CollectiveError);
        expect(error.reason).toBe("timeout");
        expect(error.message).toMatch(
          /^all-reduce number 1 failed on rank [01]: NCCL has not finished it after 2 s; check that every rank calls the same/,
        );
        expect(error.message).toBe(errors[0].message);
      }
      for (const { rank } of groups) expect(xs[rank]!.every((each) => each === rank)).toBe(true);
    }));

  it("can be aborted while its operations hang, with those that have not started", () =>
    withWorld(3, {}, async (groups) => {
      const waiting = groups.slice(1).flatMap((group) => [
        group.allReduce(new Float32Array(10)),
        group.allToAll(
          groups.map(() => new Uint8Array(5)),
          groups.map(() => new Uint8Array(5)),
        ),
        group.send(new Uint8Array(5), 0),
      ]);
      await sleep(20);
      groups[2]!.abort("enough");
      for (const error of await errorsOf(waiting)) expect(error.message).toBe("rank 2 aborted the group: enough");
      expect((await errorsOf([groups[0]!.barrier()]))[0].message).toBe("rank 2 aborted the group: enough");
    }));

  it("ends several groups whose operations hang on the same device", () =>
    withWorld(2, { timeoutSeconds: 3 }, async (groups) => {
      const inner = await everywhere(groups, async (group) => (await group.split(0))!);
      const waiting = [groups[0]!, inner[0]!].map((group) => group.allReduce(new Float32Array(10)));
      for (const error of await errorsOf(waiting))
        expect(error.message).toMatch(/^all-reduce number 1 failed on rank 0/);
    }));

  it("runs many all-to-alls at once while another group waits for a rank", () =>
    withWorld(2, {}, async (groups) => {
      const inner = await everywhere(groups, async (group) => (await group.split(0))!);
      const waiting = inner[0]!.barrier();
      const parts = groups.map((group) => new DeviceBuffer(group, 2, "i32"));
      const half = (x: DeviceBuffer, at: number) => ({
        pointer: x.pointer + 4n * BigInt(at),
        length: 1,
        dtype: x.dtype,
        device: x.device,
      });
      const results = groups.map((group) => new DeviceBuffer(group, 2, "i32"));
      await everywhere(groups, (_, rank) => parts[rank]!.write(Int32Array.of(10 * rank, 10 * rank + 1)));
      const notes = await everywhere(groups, (group, rank) => {
        const [from, to] = [parts[rank]!, results[rank]!].map((x) => [half(x, 0), half(x, 1)]);
        return Promise.all(
          Array.from({ length: 50 }, (_, k) => group.allToAll(from!, to!, { note: (k + rank) % 100 })),
        );
      });
      expect(notes[0]).toEqual(Array.from({ length: 50 }, (_, k) => [k, k + 1]));
      const got = new Int32Array(2);
      await results[1]!.read(got);
      expect([...got]).toEqual([1, 11]);
      await Promise.all([waiting, inner[1]!.barrier()]);
      for (const x of [...parts, ...results]) x.free();
    }));

  it("fails with the device's error where its context is broken", async () => {
    await withWorld(2, {}, async (groups) => {
      const waiting = groups[0]!.allReduce(new Float32Array(10));
      await sleep(10);
      streams.breakContext(1);
      try {
        const [error] = await errorsOf([waiting]);
        expect([error.reason, error.message]).toEqual([
          "device",
          "all-reduce number 1 failed on rank 0: cuEventQuery on cuda:0: CUDA_ERROR_ILLEGAL_ADDRESS",
        ]);
        await close(groups);
      } finally {
        streams.breakContext(0);
      }
    });
  });

  it("gets from NCCL itself the error that another rank is gone", async () => {
    const { library, driver } = defaultLibrary;
    const id = collectives().ncclUniqueId(library);
    const open = (rank: number) =>
      collectives().nccl(collectives().ncclDevice(rank, library, driver), rank, 2, id, {}, 60, 60);
    const [first, second] = [open(0), open(1)];
    await Promise.all([first.connect([]), second.connect([])]);
    const waiting = first.operate(kinds.allReduce, 0, -1, [new Float32Array(3)], [], 0);
    await sleep(10);
    second.abort("gone without a word");
    await expect(waiting).rejects.toMatchObject({
      reason: "transport",
      message:
        "all-reduce number 1 failed on rank 0: NCCL: remote process exited or there was a network error (a rank has aborted)",
    });
    await Promise.all([first.close(), second.close()]);
  });

  it("ends with its worker thread even while an operation hangs, and other groups go on", async () => {
    const addon = new URL("../../../../native/collectives/src/index.ts", import.meta.url).href;
    const code = `
      import(${JSON.stringify(addon)}).then(async ({ collectives }) => {
        const [library, driver] = ${JSON.stringify([defaultLibrary.library, defaultLibrary.driver])};
        const id = collectives().ncclUniqueId(library);
        globalThis.ranks = [0, 1].map((rank) =>
          collectives().nccl(collectives().ncclDevice(rank, library, driver), rank, 2, id, {}, 60, 60),
        );
        await Promise.all(ranks.map((rank) => rank.connect([])));
        ranks[0].operate(${kinds.allReduce}, 0, -1, [new Float32Array(1 << 20)], [], 0).catch(() => {});
        ranks[1].operate(${kinds.recv}, 0, 0, [new Float32Array(1 << 20)], [], 0).catch(() => {});
        require("node:worker_threads").parentPort.postMessage("pending");
      });`;
    await withWorld(2, {}, async (groups) => {
      for (let k = 0; k < 3; k++) {
        const worker = new Worker(code, { eval: true, execArgv: ["--conditions=@terse/source"] });
        expect(await once(worker, "message")).toEqual(["pending"]);
        await worker.terminate();
      }
      await everywhere(groups, (group) => group.barrier());
    });
  });

  it("cancels a single send or receive in the turn of the event loop that called it", () =>
    withWorld(2, {}, async (groups) => {
      const cancel = new AbortController();
      const x = new Uint8Array(1);
      const taken = groups[1]!.recv(x, 0, { signal: cancel.signal });
      const kept = groups[1]!.recv(x, 0);
      cancel.abort(new Error("no longer"));
      const sent = groups[0]!.send(Uint8Array.of(9), 1);
      expect((await errorsOf([taken]))[0].message).toBe("no longer");
      await Promise.all([kept, sent]);
      expect(x[0]).toBe(9);
    }));

  it("refuses sums of 16-bit integers, and the group goes on", () =>
    withWorld(2, {}, async (groups) => {
      await everywhere(groups, async (group) => {
        await expect(group.allReduce(new Int16Array(2))).rejects.toThrow("NCCL cannot reduce i16");
        await group.barrier();
      });
    }));
});

describe("a split over NCCL", () => {
  const gathered = async (group: Group, value: number) => {
    const parts = Array.from({ length: group.size }, () => new Int32Array(1));
    parts[group.rank]![0] = value;
    await group.allGather(parts);
    return parts.map(([x]) => x);
  };

  it.each([
    ["by ncclCommSplit", {}],
    ["by ncclCommSplit, in progress 7 times", { progress: 7 }],
    ["by ncclCommSplit of 2.18", { version: 21800 }],
    ["without ncclCommSplit, where the library lacks it", { without: ["ncclCommSplit"], split: 3 }],
  ] as const)("has any colors and keys, %s", async (_, options) => {
    const library = fake.build(options);
    const before = streams.count(counted.communicators);
    await withWorld(5, { of: () => library }, async (groups) => {
      const colors = [-7, 2 ** 40, undefined, -7, 2 ** 40];
      const keys = [0.5, 3, 0, 0.25, -(2 ** 35)];
      const inner = await everywhere(groups, (group, rank) => group.split(colors[rank], keys[rank]));
      expect(inner[2]).toBeUndefined();
      const members = await Promise.all(inner.map((group, rank) => group && gathered(group, rank)));
      expect(members).toEqual([[3, 0], [4, 1], undefined, [3, 0], [4, 1]]);
      const again = await everywhere(inner.filter(Boolean) as Group[], (group) => group.split(0, -group.rank));
      const ranks = again.map((group) => group!.rank);
      expect(ranks).toEqual([0, 0, 1, 1]);
      expect(await Promise.all(again.map((group, at) => gathered(group!, at)))).toEqual([
        [0, 2],
        [1, 3],
        [0, 2],
        [1, 3],
      ]);
    });
    while (streams.count(counted.communicators) > before) await sleep(1);
  });

  it("runs in order with the operations around it, even when the ranks call it at different times", () =>
    withWorld(3, {}, async (groups) => {
      const xs = groups.map(({ rank }) => [Int32Array.of(rank), Int32Array.of(10 * rank)] as const);
      const inner = await everywhere(groups, async (group, rank) => {
        await sleep(20 * rank);
        const first = group.allReduce(xs[rank]![0]);
        const splitting = group.split(0, -rank);
        const second = group.allReduce(xs[rank]![1]);
        await Promise.all([first, second]);
        return (await splitting)!;
      });
      for (const [x, y] of xs) expect([x[0], y[0]]).toEqual([3, 30]);
      for (const { rank } of groups) expect(inner[rank]!.rank).toBe(2 - rank);
      await everywhere(inner, everyOperation);
    }));

  it("leaves the parent group usable when the new group is aborted", () =>
    withWorld(2, {}, async (groups) => {
      const inner = await everywhere(groups, async (group) => (await group.split(0))!);
      const waiting = inner[0]!.barrier();
      inner[1]!.abort("enough");
      expect((await errorsOf([waiting]))[0].message).toMatch(/^rank 1 .*aborted the group: enough$/);
      await everyOperationOn(groups);
    }));

  it.each([
    ["fails", { split: 3 }, /^split failed on rank \d: ncclCommSplit: internal error \(the split has failed\)$/],
    ["does not end", { splitting: 1e9 }, /^split failed on rank \d: NCCL has not split the group after 5 s/],
  ] as const)("that %s ends the group on every rank, and leaves nothing behind", async (_, options, message) => {
    const library = fake.build(options);
    const before = streams.count(counted.communicators);
    await withWorld(3, { of: () => library, deadlineSeconds: 5 }, async (groups) => {
      const errors = await errorsOf(groups.map((group) => group.split(group.rank === 1 ? undefined : 0)));
      for (const error of [...errors, ...(await errorsOf(groups.map((group) => group.barrier())))])
        expect(error.message).toMatch(message);
    });
    while (streams.count(counted.communicators) > before) await sleep(1);
  });

  it("ends when the group is aborted during it, and leaves nothing behind", async () => {
    const library = fake.build({ splitting: 1e9 });
    const before = streams.count(counted.communicators);
    await withWorld(3, { of: () => library }, async (groups) => {
      const splitting = groups.map((group) => group.split(0));
      await sleep(50);
      groups[1]!.abort("enough");
      for (const error of await errorsOf(splitting)) expect(error.message).toBe("rank 1 aborted the group: enough");
    });
    while (streams.count(counted.communicators) > before) await sleep(1);
  });

  it("fails at the deadline when a rank does not call it", () =>
    withWorld(2, { timeoutSeconds: 0.2 }, async (groups) => {
      const errors = await errorsOf([groups[0]!.split(0), groups[0]!.barrier()]);
      for (const error of errors)
        expect(error.message).toBe("split failed on rank 0: not all ranks have called it after 0.2 s");
    }));
});

describe("joining a world over NCCL", () => {
  const rejection = async (joining: Promise<unknown>) => (await errorsOf([joining]))[0] as Error;

  it("of one rank needs no rendezvous", async () => {
    await using group = await joinWorld({ env: {}, engine: "nccl", nccl: defaultLibrary });
    expect([group.engine, group.size]).toEqual(["nccl", 1]);
    await everyOperation(group);
  });

  it("names the reason when the library or the driver cannot be opened", async () => {
    const library = "/nowhere/libnccl.so.2";
    expect(findNccl({ ...defaultLibrary, library })).toEqual({
      available: false,
      reason: expect.stringMatching(
        /^NCCL does not open \(\/nowhere\/libnccl\.so\.2 does not exist\): install it by `pip install/,
      ),
      devices: 16,
    });
    const without = { ...defaultLibrary, driver: "/nowhere/libcuda.so.1" };
    expect(findNccl(without)).toMatchObject({
      available: false,
      reason: "the NVIDIA driver does not open (/nowhere/libcuda.so.1 does not exist)",
      version: "2.30.7",
    });
    for (const nccl of [{ ...defaultLibrary, library }, without]) {
      const error = await rejection(joinWorld({ env: {}, engine: "nccl", nccl }));
      expect(error).toBeInstanceOf(RendezvousError);
      expect(error.message).toMatch(/^the engine nccl is not available here: .*does not exist/);
    }
  });

  it("names a symbol that the library lacks, and a version that is too old", () => {
    const lacking = fake.build({ without: ["ncclReduceScatter"] });
    expect(findNccl(lacking).reason).toBe(
      `${lacking.library} lacks ncclReduceScatter, which NCCL 2.18.0 and newer have`,
    );
    const old = fake.build({ version: 21701 });
    expect(findNccl(old).reason).toBe(`${old.library} is NCCL 2.17.1, and 2.18.0 or newer is needed`);
  });

  it("opens the files that TERSE_NCCL and TERSE_CUDA_DRIVER name", () => {
    const { library, driver } = fake.build({ version: 22907 });
    process.env["TERSE_NCCL"] = library;
    process.env["TERSE_CUDA_DRIVER"] = driver;
    try {
      const found = findNccl();
      expect(found).toEqual({ available: true, reason: "", version: "2.29.7", path: library, absent: [], devices: 16 });
    } finally {
      delete process.env["TERSE_NCCL"];
      delete process.env["TERSE_CUDA_DRIVER"];
    }
  });

  it("has memory that `copy` reads and writes, by the driver that TERSE_CUDA_DRIVER names", async () => {
    process.env["TERSE_CUDA_DRIVER"] = defaultLibrary.driver;
    try {
      const [group] = await makeWorld(1);
      using x = new DeviceBuffer(group!, 4, "f32");
      copy(x, Float32Array.of(1, 2, 3, 4));
      using y = new DeviceBuffer(group!, 3, "f32");
      const { pointer, dtype, device } = x;
      copy(y, { pointer: pointer + 4n, length: 3, dtype, device });
      const read = new Float32Array(3);
      copy(read, y);
      expect([...read]).toEqual([2, 3, 4]);
      expect(() => copy(read, { pointer: 4096n, length: 3, dtype, device })).toThrow(
        "copy: cuMemcpyDtoHAsync: CUDA_ERROR_INVALID_VALUE",
      );
      expect(() => copy(x, { pointer, length: 4, dtype, device: "cuda:1" })).toThrow(
        "into is on cuda:0 and from on cuda:1; copy through the CPU",
      );
      expect(() => copy(new Float32Array(4), { pointer, length: 4, dtype, device: "cuda:77" })).toThrow(
        "copy: cuDeviceGet of cuda:77: CUDA_ERROR",
      );
    } finally {
      delete process.env["TERSE_CUDA_DRIVER"];
    }
  });

  it("names the ranks whose versions of NCCL differ", async () => {
    const old = fake.build({ version: 22703 });
    const error = await rejection(makeWorld(3, { of: (rank) => (rank === 1 ? old : defaultLibrary) }));
    expect(error).toBeInstanceOf(RendezvousError);
    const here = hostname();
    expect(error.message).toBe(
      `the ranks have different versions of NCCL: 2.30.7 on rank 0 on ${here}, 2 on ${here}; 2.27.3 on rank 1 on ${here}; install the same one everywhere, or name its file in TERSE_NCCL`,
    );
  });

  it("names a device that does not exist", async () => {
    const error = await rejection(joinWorld({ env: {}, engine: "nccl", nccl: { ...defaultLibrary, device: 16 } }));
    expect(error.message).toMatch(/^rank 0 has no GPU for NCCL: there is no cuda:16; this process sees 16/);
  });

  it("takes the device with the rank's number on its machine, or the only visible one", () => {
    expect([chooseDevice(3, 8), chooseDevice(3, 1), chooseDevice(0, 1)]).toEqual([3, 0, 0]);
  });

  it("refuses an emulated link", async () => {
    const error = await rejection(joinWorld({ env: {}, engine: "nccl", nccl: defaultLibrary, emulateLink: "1gbit" }));
    expect(error).toBeInstanceOf(TypeError);
  });

  it("passes every field of the configuration to NCCL", async () => {
    const config = { minCTAs: 9, maxCTAs: 2, commName: "ours", netName: "Socket" };
    const error = await rejection(joinWorld({ env: {}, engine: "nccl", nccl: { ...defaultLibrary, config } }));
    expect(error.message).toContain("minCTAs 9 above maxCTAs 2 for ours over Socket");
  });

  it("refuses fields of the configuration that this library, or every NCCL, lacks", async () => {
    const older = fake.build({ version: 22407 });
    const refusal = (nccl: NcclOptions) => rejection(joinWorld({ env: {}, engine: "nccl", nccl }));
    expect((await refusal({ ...older, config: { nvlsCTAs: 4 } })).message).toBe(
      "nvlsCTAs needs NCCL 2.27.0 or newer; this library is 2.24.7 and would ignore it",
    );
    expect((await refusal({ ...defaultLibrary, config: { maxCtas: 4 } })).message).toMatch(
      /^NCCL's configuration has no field maxCtas; its fields are cgaClusterSize, minCTAs, maxCTAs, netName/,
    );
    expect((await refusal({ ...defaultLibrary, config: { netName: 4 } })).message).toBe("netName is a text");
    expect((await refusal({ ...defaultLibrary, config: { blocking: 1 } })).message).toMatch(
      /^NCCL's configuration has no field blocking/,
    );
  });

  it("warns about NCCL_COMM_BLOCKING", async () => {
    process.env["NCCL_COMM_BLOCKING"] = "1";
    try {
      const warned = once(process, "warning");
      await using _group = await joinWorld({ env: {}, engine: "nccl", nccl: defaultLibrary });
      expect((await warned)[0].message).toMatch(/^NCCL_COMM_BLOCKING=1 makes NCCL's calls block/);
    } finally {
      delete process.env["NCCL_COMM_BLOCKING"];
    }
  });

  it.skipIf(!realLibrary)("fails with NCCL's own error (skipped where pip has not installed NCCL)", async () => {
    // The real library with the fake driver, which lacks what the CUDA runtime needs.
    const nccl = { library: realLibrary!, driver: fake.driver, device: 0 };
    const error = await rejection(joinWorld({ env: {}, engine: "nccl", nccl, deadlineSeconds: 300 }));
    expect(error).toBeInstanceOf(RendezvousError);
    expect(error.message).toMatch(
      /^connect failed on rank 0: ncclCommInitRankConfig: unhandled cuda error \(run with NCCL_DEBUG=INFO for details\)/,
    );
  });

  it("fails on every rank when one cannot connect", async () => {
    const broken = { ...defaultLibrary, config: { minCTAs: 9, maxCTAs: 2 } };
    const error = await rejection(
      makeWorld(3, { deadlineSeconds: 60, of: (rank) => (rank === 2 ? broken : defaultLibrary) }),
    );
    expect(error.message).toMatch(/rank 2/);
  });
});
