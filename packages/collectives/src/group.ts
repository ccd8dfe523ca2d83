import type { BufferLike } from "@terse/native-collectives";
import type { Link } from "./link.ts";

/**
 * How values of several ranks become one. Integers wrap. `f16` and `bf16` are added in f32 and rounded after every
 * step. `mean` is the sum divided by the number of ranks, for floats.
 */
export type Reduction = "sum" | "prod" | "min" | "max" | "mean";

/** What this rank has handed to its transport since the group began. A header is 32 bytes, one per message. */
export interface Sent {
  readonly bytes: number; // payload
  readonly messages: number;
  readonly headerBytes: number;
}

/** Options of every operation of a group. */
export interface OperationOptions {
  /**
   * Aborting it ends the wait. A send or a receive whose message has not begun to move is cancelled alone: its promise
   * rejects with the signal's reason, and the group goes on as if it had never been called. The other ranks count on
   * every other operation, even if it is still queued or its signal was aborted before the call. There the group ends,
   * as by `abort`: the error on every rank names this rank, the operation and the reason. Aborting after the operation
   * has finished does nothing.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The operations that every rank of a group must call in the same order, with the same sizes. None needs to be awaited
 * before the next one is called; they run in the order of the calls.
 *
 * This is an interface of its own so that a class that orders the collectives of several callers can say `implements
 * Collectives`. A collective that is added here and missing there is then a type error, and cannot bypass that order.
 */
export interface Collectives {
  /**
   * x ← x₀ ∘ x₁ ∘ …, in place, of any length. On a device `x` begins at a multiple of 8 bytes. `packed`, for sums of
   * u8, is the caller's promise that no sum overflows its byte or a field within it. Sums are then the same in words of
   * any width, and an engine adds in the fastest width.
   */
  allReduce(x: BufferLike, op?: Reduction, options?: OperationOptions & { packed?: boolean }): Promise<void>;
  /** `parts[r]` belongs to rank r; afterwards `parts[rank]` holds the reduction and the others are unspecified. */
  reduceScatter(parts: readonly BufferLike[], op?: Reduction, options?: OperationOptions): Promise<void>;
  /** `parts[rank]` is this rank's, the others are filled. Lengths may differ by rank, and be 0. */
  allGather(parts: readonly BufferLike[], options?: OperationOptions): Promise<void>;
  /**
   * `outgoing[r]` arrives as `incoming[rank]` of rank r. Lengths may differ, and be 0. The lists share no memory, but
   * for the part that this rank keeps. `note`, 0 to 127, is a number that the messages' headers carry to every rank;
   * the result is the note of each rank.
   * `even`, the same on all ranks: every part of every rank has one length, so that an engine may use its native
   * all-to-all.
   */
  allToAll(
    outgoing: readonly BufferLike[],
    incoming: readonly BufferLike[],
    options?: OperationOptions & { note?: number; even?: boolean },
  ): Promise<number[]>;
  /** The root's `x` replaces that of the others. */
  broadcast(x: BufferLike, root: number, options?: OperationOptions): Promise<void>;
  /**
   * Every rank's `x` arrives at the root as `parts[r]`; only the root needs parts. Lengths may differ by rank, and be
   * 0.
   */
  gather(x: BufferLike, root: number, parts?: readonly BufferLike[], options?: OperationOptions): Promise<void>;
  /** The root's `parts[r]` arrives as rank r's `x`; only the root needs parts. Lengths may differ by rank, and be 0. */
  scatter(x: BufferLike, root: number, parts?: readonly BufferLike[], options?: OperationOptions): Promise<void>;
  barrier(options?: OperationOptions): Promise<void>;
}

/** Messages between two ranks. They run beside the collectives, in order per peer and direction. */
export interface PointToPoint {
  send(x: BufferLike, to: number, options?: OperationOptions): Promise<void>;
  recv(x: BufferLike, from: number, options?: OperationOptions): Promise<void>;
}

/**
 * A rank's view of a group of ranks. A result is the same on all ranks, bit for bit.
 *
 * From the call until its promise settles, an operation owns the memory that it is given: nobody else may read or write
 * it. The operation keeps the memory alive, so a tensor may be disposed and its scope may end meanwhile. An ArrayBuffer
 * may be transferred: the result is then in the new buffer if that has the same length. Memory that cannot be kept is
 * refused: an array in a resizable ArrayBuffer is a TypeError, and resizing a tensor that is in use is a TensorError.
 * What an operation writes shares no memory with its other arguments, else the call is a RangeError.
 * The memory of an object with a pointer is kept if the object has `retain`; otherwise the caller must keep it.
 *
 * The first error ends the group: everything pending and later rejects with that same error, on every rank, and only
 * `close` is left to call. It is a `RankLostError` when a rank is gone, else a `CollectiveError`. Arguments that cannot
 * be right (a wrong number of parts, no such rank) reject with a `TypeError` or `RangeError`, and the group goes on.
 */
export interface Group extends Collectives, PointToPoint, AsyncDisposable {
  readonly rank: number;
  readonly size: number;
  readonly engine: string;
  /** The device, besides the CPU, whose memory its operations take: "cuda:0". */
  readonly device?: string | undefined;
  /** The link that this group's connections are slowed down to, where one is emulated. */
  readonly emulatedLink?: Link | undefined;
  /**
   * Ranks with the same color form a new group, ordered by key, then by rank; `undefined` joins none. All ranks call
   * it.
   */
  split(color: number | undefined, key?: number): Promise<Group | undefined>;
  /** Ends the group with an error, here and on every other rank. */
  abort(reason: string): void;
  /**
   * Waits for what is pending, then for the other ranks to close too, and frees the connections. Never rejects. In
   * `loopback` a rank does not wait for the others.
   */
  close(): Promise<void>;
  sent(): Sent;
}
