/** The native collectives: engines and wire threads. `@terse/collectives` is the interface that people use. */
import { type BufferLike, loadAddon, type TypedArray } from "@terse/native-loader";

export type { BufferLike, DType, NativeBuffer, TypedArray } from "@terse/native-loader";

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
  copy: 11,
  enroll: 12,
} as const;

/** Numbers as in operation.h. */
export const reductions = { sum: 0, prod: 1, min: 2, max: 3, mean: 4 } as const;

/** What a rejected promise carries: why, and which other rank it speaks of (−1: none). */
export interface NativeFailure extends Error {
  readonly reason: "transport" | "mismatch" | "timeout" | "aborted" | "argument" | "lost" | "device" | "withdrawn";
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
    parts: readonly BufferLike[],
    incoming: readonly BufferLike[],
    note: number,
    promises?: number,
  ): Promise<number[] | undefined>;
  /** NCCL: the sends and receives that were called so far begin together. */
  flush(): void;
  /**
   * NCCL: takes this place in the order of the operations for a split, where every rank of the group then joins by `ncclSplit`. The
   * promise settles when that has come to its end.
   */
  split(): [NcclPlace, Promise<void>];
  /** `withdrawn`: as if never called, and its promise rejects; `bound`: other ranks count on it, and only `abort` ends it. */
  cancel(operation: Promise<unknown>): "finished" | "withdrawn" | "bound";
  abort(why: string): void;
  close(): Promise<void>;
  sent(): { bytes: number; messages: number; headerBytes: number };
}

/** What a caller promises about an operation's memory; bits of `operate`'s last argument, as in operation.h. */
export const promises = { packed: 1, even: 2 } as const;

/** What became of looking for NCCL and the NVIDIA driver. */
export interface NcclStatus {
  readonly available: boolean;
  /** Why not; empty where it is. */
  readonly reason: string;
  readonly version?: string;
  readonly path?: string;
  /** Symbols that this version lacks and that the engine does without. */
  readonly absent?: readonly string[];
  /** GPUs that this process sees. */
  readonly devices: number;
}

/** A rank's thread on its device, which all its groups share; opaque. */
export interface NcclDevice {
  readonly "terse nccl device": unique symbol;
}

/** Where a group of NCCL's is split; opaque. */
export interface NcclPlace {
  readonly "terse nccl place": unique symbol;
}

/** Numbers as in faulty.h. */
export const faultKinds = { delay: 0, loss: 1, death: 2 } as const;

/** See faulty.h. */
export interface NativeFault {
  readonly rank: number;
  readonly kind: number;
  readonly at: number;
  readonly milliseconds: number;
  readonly to: number;
}

/** One rank's emulated link, which all its groups share; opaque. */
export interface NativeLink {
  readonly "terse link": unique symbol;
}

/** This process among those of its MPI job. */
export interface MpiPlace {
  readonly rank: number;
  readonly size: number;
  readonly library: string;
}

interface Collectives {
  readonly hasGloo: boolean;
  /** The build found an MPI; whether it opens and starts, `startMpi` tells. */
  readonly hasMpi: boolean;
  readonly inlineBytes: number;
  readonly segmentBytes: number;
  loopback(
    size: number,
    timeoutSeconds: number,
    faults: readonly NativeFault[],
    links: readonly NativeLink[],
  ): Communicator[];
  tcp(
    rank: number,
    size: number,
    address: string,
    timeoutSeconds: number,
    connectSeconds: number,
    link: NativeLink | undefined,
    silenceSeconds: number,
  ): [Communicator, Uint8Array[]];
  gloo(
    rank: number,
    size: number,
    address: string,
    timeoutSeconds: number,
    connectSeconds: number,
    link: NativeLink | undefined,
    silenceSeconds: number,
  ): [Communicator, Uint8Array[]];
  /** Looks as `TERSE_NCCL` and `TERSE_CUDA_DRIVER` say where no file is named. Never throws. */
  ncclStatus(library?: string, driver?: string): NcclStatus;
  ncclDevice(ordinal: number, library?: string, driver?: string): NcclDevice;
  /** This rank's place among those that name the same `color`, usable when the split has come to its end; −1: in no group. */
  ncclSplit(
    place: NcclPlace,
    color: number,
    key: number,
    rank: number,
    size: number,
    config: Readonly<Record<string, number | string>>,
    timeoutSeconds: number,
    connectSeconds: number,
  ): Communicator | undefined;
  ncclAllocate(device: NcclDevice, bytes: number): bigint;
  /** Returns at once; the memory is gone when no group has it registered any more. */
  ncclFree(device: NcclDevice, pointer: bigint): void;
  ncclUniqueId(library?: string): Uint8Array;
  nccl(
    device: NcclDevice,
    rank: number,
    size: number,
    uniqueId: Uint8Array,
    config: Readonly<Record<string, number | string>>,
    timeoutSeconds: number,
    connectSeconds: number,
  ): Communicator;
  /** Starts MPI, once in a process; resolves when every process of the job has called it. */
  startMpi(deadlineSeconds: number): Promise<MpiPlace>;
  /** After `startMpi`. One rank's end of a group, and what it tells each other rank. */
  mpi(rank: number, size: number, timeoutSeconds: number, link: NativeLink | undefined): [Communicator, Uint8Array[]];
  /** After `startMpi`. All processes of the job, which need not hear of each other first; `round` counts from 0, alike in all. */
  mpiMeeting(round: number, timeoutSeconds: number): Communicator;
  link(bitsPerSecond: number, latencySeconds: number): NativeLink;
  /** into ← into ∘ from on bare bytes, as the wire threads do it; `dtype` counts from u8 = 0 in the order of `DType`. */
  reduce(reduction: number, dtype: number, into: Uint8Array, from: Uint8Array): void;
  /** into ← from, byte by byte; they may overlap. RangeError when one has more bytes. */
  copy(into: BufferLike, from: BufferLike): void;
  /** Of the first element. The array must live as long as the address is used. */
  addressOf(x: TypedArray): bigint;
  /** Shows every `intervalMs` that this process lives; `silent` is called when the other side, having answered, no longer does. */
  beat(
    host: string,
    port: number,
    hello: string,
    intervalMs: number,
    silenceMs: number,
    silent: () => void,
  ): () => void;
  /** Shows on connections, by their descriptors, that this process lives. `remove` wants the number that `add` gave. */
  answers(intervalMs: number): { add(fd: number): number; remove(number: number): void; stop(): void };
}

let addon: Collectives | undefined;

/** Opens the addon when first asked, so that importing needs no native build. Throws NativeMissingError. */
export function collectives(): Collectives {
  addon ??= loadAddon("collectives", import.meta.url) as unknown as Collectives;
  return addon;
}
