/** The addon's engines and communicators; `@terse/collectives` is the public interface over them. */
import { type BufferLike, loadAddon, type TypedArray } from "@terse/native-loader";

export {
  type BufferLike,
  checkBuffer,
  checkOptions,
  type DType,
  elementBytes,
  type NativeBuffer,
  type RetainedBuffer,
  retain,
  type TypedArray,
} from "@terse/native-loader";

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
  registerBuffer: 12,
} as const;

/** Numbers as in operation.h. */
export const reductions = { sum: 0, prod: 1, min: 2, max: 3, mean: 4 } as const;

/** The error of a rejected promise: the reason, and the other rank that it concerns (−1: none). */
export interface NativeFailure extends Error {
  readonly reason: "transport" | "mismatch" | "timeout" | "aborted" | "argument" | "lost" | "device" | "cancelled";
  readonly peer: number;
  /** A device that does not answer may still use the operation's memory. */
  readonly memoryInUse?: boolean;
}

/** One rank's membership of a group. After the first error every pending and later operation rejects with it. */
export interface Communicator {
  readonly rank: number;
  readonly size: number;
  connect(addresses: readonly Uint8Array[]): Promise<void>;
  /** The memory of typed arrays stays until the promise settles. The caller sees to that of other buffers. */
  operate(
    kind: number,
    reduction: number,
    peer: number,
    parts: readonly BufferLike[],
    incoming: readonly BufferLike[],
    note: number,
    guarantees?: number,
  ): Promise<number[] | undefined>;
  /** NCCL: starts the sends and receives that were called so far, as one group. */
  flush(): void;
  /**
   * NCCL: queues a split among the operations. Every rank of the group then joins it by `ncclSplit`. The promise
   * settles when the split has ended.
   */
  split(): [NcclPendingSplit, Promise<void>];
  /** `cancelled`: it never started, and its promise rejects; `started`: other ranks count on it until `abort`. */
  cancel(operation: Promise<unknown>): "finished" | "cancelled" | "started";
  abort(why: string): void;
  close(): Promise<void>;
  sent(): { bytes: number; messages: number; headerBytes: number };
}

/** What the caller guarantees about an operation; bits of `operate`'s last argument, as in operation.h. */
export const guarantees = { packed: 1, even: 2 } as const;

/** The result of the search for NCCL and the NVIDIA driver. */
export interface NcclStatus {
  readonly available: boolean;
  /** Why it is not available, or empty. */
  readonly reason: string;
  readonly version?: string;
  readonly path?: string;
  /** Optional symbols that this version lacks. */
  readonly absent?: readonly string[];
  /** GPUs that this process sees. */
  readonly devices: number;
}

/** A CUDA device with the thread that calls NCCL on it, which all groups of a rank share; opaque. */
export interface NcclDevice {
  readonly "terse nccl device": unique symbol;
}

/** A split that waits for its ranks; opaque. */
export interface NcclPendingSplit {
  readonly "terse nccl pending split": unique symbol;
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

/** This process in MPI_COMM_WORLD. */
export interface MpiWorld {
  readonly rank: number;
  readonly size: number;
  readonly library: string;
}

/** One rank of a group, which listens at `address`, and its addresses by peer. */
type Listening = (
  rank: number,
  size: number,
  address: string,
  timeoutSeconds: number,
  connectSeconds: number,
  link: NativeLink | undefined,
  outageSeconds: number,
) => [Communicator, Uint8Array[]];

interface Collectives {
  readonly hasGloo: boolean;
  /** The build found an MPI. `startMpi` tells whether it opens and starts. */
  readonly hasMpi: boolean;
  /** The sizes of header.h, in bytes. */
  readonly wireSizes: Readonly<Record<string, number>>;
  loopback(
    size: number,
    timeoutSeconds: number,
    faults: readonly NativeFault[],
    links: readonly NativeLink[],
  ): Communicator[];
  tcp: Listening;
  gloo: Listening;
  /** Without arguments it uses `TERSE_NCCL` and `TERSE_CUDA_DRIVER`. Never throws. */
  ncclStatus(library?: string, driver?: string): NcclStatus;
  ncclDevice(ordinal: number, library?: string, driver?: string): NcclDevice;
  /** The communicator among the ranks with the same `color`, usable when the split has ended. Color −1: none. */
  ncclSplit(
    pending: NcclPendingSplit,
    color: number,
    key: number,
    rank: number,
    size: number,
    config: Readonly<Record<string, number | string>>,
    timeoutSeconds: number,
    connectSeconds: number,
  ): Communicator | undefined;
  ncclAllocate(device: NcclDevice, bytes: number): bigint;
  /** Returns at once. The memory is freed when no group has it registered any more. */
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
  /** Starts MPI, once in a process. Resolves when every process of the job has called it. */
  startMpi(deadlineSeconds: number): Promise<MpiWorld>;
  /** After `startMpi`. One rank of a group, and its addresses by peer. */
  mpi(rank: number, size: number, timeoutSeconds: number, link: NativeLink | undefined): [Communicator, Uint8Array[]];
  /**
   * After `startMpi`. All processes of the job, without exchanged addresses; `round` counts from 0, with the same
   * number in all of them.
   */
  mpiBootstrap(round: number, timeoutSeconds: number): Communicator;
  link(bitsPerSecond: number, latencySeconds: number): NativeLink;
  /** into ← into ∘ from on bytes, as the wire threads do it; `dtype` counts from u8 = 0 in the order of `DType`. */
  reduce(reduction: number, dtype: number, into: Uint8Array, from: Uint8Array): void;
  /** into ← from; they may overlap. RangeError if they differ in bytes. */
  copy(into: BufferLike, from: BufferLike): void;
  /** into ← (1/P) Σ parts, f32 on the CPU. Returns the first element that is not finite, or the length. */
  average(into: BufferLike, parts: readonly BufferLike[]): number;
  /** The address of the first element. The array must live as long as the address is used. */
  addressOf(x: TypedArray): bigint;
  /**
   * Sends `hello` to the server and then a line every `intervalMs`, on a native thread. Connects anew where replies are
   * missing. Calls `onSilence` if the server has answered and then stays silent for `silenceMs`. Returns a function
   * that stops it.
   */
  heartbeat(
    host: string,
    port: number,
    hello: string,
    intervalMs: number,
    silenceMs: number,
    onSilence: () => void,
  ): () => void;
  /**
   * The server's replies: a line every `intervalMs` on each connection, given by its descriptor. `remove` takes the
   * number that `add` returned.
   */
  heartbeatReplies(intervalMs: number): { add(fd: number): number; remove(number: number): void; stop(): void };
  /** From now on the kernel kills this process when its parent has ended, however it did. */
  endWithParent(): void;
}

let addon: Collectives | undefined;

/** Opens the addon at the first call, so an import needs no native build. Throws NativeMissingError. */
export function collectives(): Collectives {
  addon ??= loadAddon("collectives", import.meta.url) as unknown as Collectives;
  return addon;
}
