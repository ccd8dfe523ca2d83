/** The native collectives: engines and wire threads. `@terse/collectives` is the interface that people use. */
import { loadAddon, type Memory, type TypedArray } from "@terse/native-loader";

export type { DType, Memory, PointerMemory, TypedArray } from "@terse/native-loader";

/** Numbers as in operation.h. */
export const kinds = {
  allReduce: 1,
  reduceScatter: 2,
  allGather: 3,
  allToAll: 4,
  broadcast: 5,
  send: 6,
  recv: 7,
  barrier: 8,
  gather: 9,
  scatter: 10,
} as const;

/** Numbers as in operation.h. */
export const reductions = { sum: 0, prod: 1, min: 2, max: 3, mean: 4 } as const;

/** What a rejected promise carries: why, and which other rank it speaks of (−1: none). */
export interface NativeFailure extends Error {
  readonly reason: "transport" | "mismatch" | "timeout" | "aborted" | "argument" | "lost";
  readonly peer: number;
}

/** One rank's place in a group. After the first error everything pending and later rejects with that same error. */
export interface Communicator {
  readonly rank: number;
  readonly size: number;
  connect(addresses: readonly Uint8Array[]): Promise<void>;
  operate(
    kind: number,
    reduction: number,
    peer: number,
    parts: readonly Memory[],
    incoming: readonly Memory[],
    note: number,
  ): Promise<number[] | undefined>;
  abort(why: string): void;
  close(): Promise<void>;
  sent(): { bytes: number; messages: number; headerBytes: number };
}

interface Collectives {
  readonly hasGloo: boolean;
  readonly inlineBytes: number;
  readonly segmentBytes: number;
  loopback(
    size: number,
    timeoutSeconds: number,
    delaysMs: readonly number[],
    lostRank: number,
    lostAt: number,
  ): Communicator[];
  gloo(
    rank: number,
    size: number,
    address: string,
    timeoutSeconds: number,
    connectSeconds: number,
  ): [Communicator, Uint8Array[]];
  /** into ← into ∘ from on bare bytes, as the wire threads do it; `dtype` counts from u8 = 0 in the order of `DType`. */
  reduce(reduction: number, dtype: number, into: Uint8Array, from: Uint8Array): void;
  /** Of the first element. The array must live as long as the address is used. */
  addressOf(x: TypedArray): bigint;
  beat(host: string, port: number, hello: string, intervalMs: number): () => void;
}

let addon: Collectives | undefined;

/** Opens the addon when first asked, so that importing needs no native build. Throws NativeMissingError. */
export function collectives(): Collectives {
  addon ??= loadAddon("collectives", import.meta.url) as unknown as Collectives;
  return addon;
}
