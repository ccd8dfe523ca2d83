/** One rank of `bench exchange`: exchanges the same floats by each method. */
import { readFileSync, writeFileSync } from "node:fs";
import { sign } from "@terse/codecs";
import { type Group, joinWorld } from "@terse/collectives";
import { carryAlone, PackedBits, vote } from "@terse/exchange";
import { applySigns } from "@terse/native-optimizers";
import { bytesOnLink, serve } from "../hosts/serve.ts";
import { Peer } from "../peer.ts";
import { PhaseClock, type Phases } from "./phases.ts";

/** The methods that make a vector of floats the same on all ranks. */
export type Method = "f32" | "1-bit" | "gloo f32" | "pytorch f32" | "pytorch compressed";

export interface Times {
  readonly milliseconds: readonly number[];
  /** The phases of each 1-bit exchange. */
  readonly phases?: readonly Phases[];
  /** Elements of our last result that differ from the paper's formula. */
  readonly wrong?: number;
  /** Bytes that this rank sent in one exchange, payload and headers. */
  readonly bytes?: number;
  /** Bytes that left over this host's link in one exchange, in all packets. */
  readonly linkBytes?: number | undefined;
}

const world = await joinWorld();
const { rank, size } = world;
let gloo: Peer | undefined;
let pytorch: Peer | undefined;

/** Element i on a rank. Sums of these are exact, and not all votes are ties. */
const element = (i: number, rank: number) => ((i * 7 + rank * 5) % 11) - 5;

/** n floats that repeat one pattern. */
function vector(n: number): Float32Array {
  const x = new Float32Array(n);
  const pattern = Float32Array.from({ length: Math.min(n, 11 * 5957) }, (_, i) => element(i, rank));
  for (let at = 0; at < n; at += pattern.length) x.set(pattern.subarray(0, n - at), at);
  return x;
}

/** The correct result: the mean, or the sign of the majority (zeros and ties are plus). */
function wanted(i: number, method: Method): number {
  const all = Array.from({ length: size }, (_, r) => element(i % (11 * 5957), r));
  if (method === "f32") return Math.fround(all.reduce((sum, x) => sum + x, 0) / size);
  return all.reduce((sum, x) => sum + (x >= 0 ? 1 : -1), 0) >= 0 ? 1 : -1;
}

/** x ← the mean, or the majority of signs as ±1. */
const methods: Record<"f32" | "1-bit", (x: Float32Array, group: Group) => Promise<Phases | undefined>> = {
  f32: async (x, group) => {
    await group.allReduce(x, "mean");
    return undefined;
  },
  "1-bit": async (x, group) => {
    const clock = new PhaseClock(group);
    // Encodes each chunk when the exchange needs it: the first signs are sent while the others are encoded.
    const u = new PackedBits(x.length, undefined, (bits, from, to) => {
      const signs = bits.signs.subarray(from / 8, Math.ceil(to / 8));
      clock.encode(() => sign.encode(signs, x.subarray(from, to), { zero: "plus" }));
    });
    using v = (await carryAlone(vote, clock.group, u, { outcome: "plus" })) as PackedBits;
    clock.decode(() => applySigns(x, v.signs, { keep: 0, scale: 1 }));
    return clock.phases;
  },
};

async function ours(method: "f32" | "1-bit", n: number, times: number): Promise<Times> {
  const input = vector(n);
  const x = new Float32Array(n);
  const milliseconds: number[] = [];
  const phases: Phases[] = [];
  const before = { own: sent(), link: 0 };
  for (let i = 0; i < times; i++) {
    x.set(input);
    await world.barrier();
    if (i === 0) Object.assign(before, { own: sent(), link: bytesOnLink() });
    const began = performance.now();
    const taken = await methods[method](x, world);
    milliseconds.push(performance.now() - began);
    if (taken) phases.push(taken);
  }
  const linkBytes = bytesOnLink();
  const barriers = (times - 1) * barrierBytes;
  let wrong = 0;
  const expected = Float32Array.from({ length: Math.min(n, 11 * 5957) }, (_, i) => wanted(i, method));
  for (let i = 0; i < n; i++) if (x[i] !== expected[i % expected.length]) wrong++;
  return {
    milliseconds,
    ...(phases.length > 0 && { phases }),
    wrong,
    bytes: (sent() - before.own - barriers) / times,
    linkBytes: linkBytes === undefined ? undefined : (linkBytes - before.link) / times,
  };
}

function sent(): number {
  const { bytes, headerBytes } = world.sent();
  return bytes + headerBytes;
}

/**
 * Peak memory of a 1-bit exchange besides its vector, in bytes a parameter, from the kernel's count of this process's pages.
 */
async function extraMemory(n: number): Promise<number> {
  const x = vector(n);
  await methods["1-bit"](vector(1 << 20), world); // allocates everything that later exchanges reuse
  await world.barrier();
  writeFileSync("/proc/self/clear_refs", "5"); // resets the peak
  const before = pages("VmRSS");
  await methods["1-bit"](x, world);
  return (pages("VmHWM") - before) / n;
}

function pages(name: "VmRSS" | "VmHWM"): number {
  return 1024 * Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync("/proc/self/status", "utf8"))![1]);
}

const sentBefore = sent();
await world.barrier();
const barrierBytes = sent() - sentBefore;

await serve({
  async peers({ program, folder }: { program?: string; folder: string }) {
    const address = process.env["TERSE_ADDRESS"]!;
    if (program) gloo = await Peer.startProgram([program, String(rank), String(size), address, folder]);
    pytorch = await Peer.start("exchange.py", []);
  },

  async run({ method, n, times }: { method: Method; n: number; times: number }): Promise<Times> {
    if (method === "gloo f32") return gloo!.ask(`gloo all-reduce-ring ${4 * n} ${times}`);
    if (method === "pytorch f32") return pytorch!.ask(`all-reduce ${n} ${times}`);
    if (method === "pytorch compressed") return pytorch!.ask(`compressed ${n} ${times}`);
    return ours(method, n, times);
  },

  memory: ({ n }: { n: number }) => extraMemory(n),

  async close() {
    await gloo?.[Symbol.asyncDispose]();
    await pytorch?.[Symbol.asyncDispose]();
    await world.close();
  },
});
