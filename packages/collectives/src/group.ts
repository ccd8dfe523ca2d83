import type { BufferLike } from "@terse/native-collectives";
import type { Link } from "./link.ts";

/** How values of several ranks become one. Integers wrap; `f16` and `bf16` are added in f32 and rounded after every step. `mean` is the sum divided by the ranks, for floats. */
export type Reduction = "sum" | "prod" | "min" | "max" | "mean";

/** What this rank has handed to its transport since the group began. A header is 32 bytes, one per message. */
export interface Sent {
  readonly bytes: number; // payload
  readonly messages: number;
  readonly headerBytes: number;
}

export interface OperationOptions {
  /**
   * Aborting it ends the wait. A send that has not begun, and a receive whose message has not begun to arrive, are taken back
   * alone: the promise rejects with the signal's reason, and the group goes on as if they had never been called. Everything else
   * is what other ranks count on, whether it runs, waits its turn, or was called with a signal that had been aborted before: the
   * group ends, as by `abort`, with an error on every rank that names this rank, the operation and the reason. An operation that
   * has finished is left as it is.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A rank's view of a group of ranks that exchange memory.
 *
 * Every rank calls the same collectives in the same order, with the same sizes; none needs to be awaited before the next is
 * called, and they run in the order of the calls. `send` and `recv` run beside them, in order per peer and direction. BufferLike
 * belongs to the operation until its promise settles, and not a moment longer. A result is the same on all ranks, bit for bit.
 *
 * The first error ends the group: everything pending and later rejects with that same error, on every rank, and only `close`
 * is left to call. It is a `RankLostError` when a rank is gone, else a `CollectiveError`. Arguments that cannot be right
 * (a wrong number of parts, no such rank) reject with a `TypeError` or `RangeError` and leave the group as it was.
 */
export interface Group extends AsyncDisposable {
  readonly rank: number;
  readonly size: number;
  readonly engine: string;
  /** The link that this group's connections are slowed down to, where one is emulated. */
  readonly emulatedLink?: Link | undefined;
  /**
   * x ← x₀ ∘ x₁ ∘ …, in place.
   * `packed`, for sums of u8: the caller knows that no sum outgrows its byte, nor a field in it, so that words of any width have the
   * same sum, and an engine may take the width that it adds fastest. Of any length; on a device it begins at a multiple of 8 bytes.
   */
  allReduce(x: BufferLike, op?: Reduction, options?: OperationOptions & { packed?: boolean }): Promise<void>;
  /** `parts[r]` belongs to rank r; afterwards `parts[rank]` holds the reduction and the others are unspecified. */
  reduceScatter(parts: readonly BufferLike[], op?: Reduction, options?: OperationOptions): Promise<void>;
  /** `parts[rank]` is this rank's, the others are filled. Lengths may differ by rank, and be 0. */
  allGather(parts: readonly BufferLike[], options?: OperationOptions): Promise<void>;
  /**
   * `outgoing[r]` arrives as `incoming[rank]` of rank r. Lengths may differ, and be 0. The lists must not overlap.
   * `note`, 0 to 127, is a word to every rank that rides in the messages' headers; the result is what each rank said.
   * `even`, the same on all ranks: every part of every rank has one length, so that an engine may take its own all-to-all.
   */
  allToAll(
    outgoing: readonly BufferLike[],
    incoming: readonly BufferLike[],
    options?: OperationOptions & { note?: number; even?: boolean },
  ): Promise<number[]>;
  /** The root's `x` replaces that of the others. */
  broadcast(x: BufferLike, root: number, options?: OperationOptions): Promise<void>;
  /** Every rank's `x` arrives at the root as `parts[r]`; the other ranks need none. Lengths may differ by rank, and be 0. */
  gather(x: BufferLike, root: number, parts?: readonly BufferLike[], options?: OperationOptions): Promise<void>;
  /** The root's `parts[r]` arrives as rank r's `x`; the other ranks need no parts. Lengths may differ by rank, and be 0. */
  scatter(x: BufferLike, root: number, parts?: readonly BufferLike[], options?: OperationOptions): Promise<void>;
  send(x: BufferLike, to: number, options?: OperationOptions): Promise<void>;
  recv(x: BufferLike, from: number, options?: OperationOptions): Promise<void>;
  barrier(options?: OperationOptions): Promise<void>;
  /** Ranks with the same color form a new group, ordered by key and then by rank. `undefined` joins none. All ranks call it. */
  split(color: number | undefined, key?: number): Promise<Group | undefined>;
  /** Ends the group with an error, here and on every other rank. */
  abort(reason: string): void;
  /** Waits for what is pending, then for the other ranks to close too, and frees the connections. Never rejects. */
  close(): Promise<void>;
  sent(): Sent;
}
