import type { Memory } from "@terse/native-collectives";

/** How values of several ranks become one. Integers wrap; `f16` and `bf16` are added in f32 and rounded after every step. `mean` is the sum divided by the ranks, for floats. */
export type Reduction = "sum" | "prod" | "min" | "max" | "mean";

/** What this rank has handed to its transport since the group began. A header is 32 bytes, one per message. */
export interface Sent {
  readonly bytes: number; // payload
  readonly messages: number;
  readonly headerBytes: number;
}

/**
 * A rank's view of a group of ranks that exchange memory.
 *
 * Every rank calls the same collectives in the same order, with the same sizes; none needs to be awaited before the next is
 * called, and they run in the order of the calls. `send` and `recv` run beside them, in order per peer and direction. Memory
 * belongs to the operation until its promise settles. A result is the same on all ranks, bit for bit.
 *
 * The first error ends the group: everything pending and later rejects with that same error, on every rank, and only `close`
 * is left to call. It is a `RankLostError` when a rank is gone, else a `CollectiveError`. Arguments that cannot be right
 * (a wrong number of parts, no such rank) reject with a `TypeError` or `RangeError` and leave the group as it was.
 */
export interface Group extends AsyncDisposable {
  readonly rank: number;
  readonly size: number;
  readonly engine: string;
  /** x ← x₀ ∘ x₁ ∘ …, in place. */
  allReduce(x: Memory, op?: Reduction): Promise<void>;
  /** `parts[r]` belongs to rank r; afterwards `parts[rank]` holds the reduction and the others are unspecified. */
  reduceScatter(parts: readonly Memory[], op?: Reduction): Promise<void>;
  /** `parts[rank]` is this rank's, the others are filled. Lengths may differ by rank, and be 0. */
  allGather(parts: readonly Memory[]): Promise<void>;
  /**
   * `outgoing[r]` arrives as `incoming[rank]` of rank r. Lengths may differ, and be 0. The lists must not overlap.
   * `note`, 0 to 127, is a word to every rank that rides in the messages' headers; the result is what each rank said.
   */
  allToAll(outgoing: readonly Memory[], incoming: readonly Memory[], options?: { note?: number }): Promise<number[]>;
  /** The root's `x` replaces that of the others. */
  broadcast(x: Memory, root: number): Promise<void>;
  /** Every rank's `x` arrives at the root as `parts[r]`; the other ranks need none. Lengths may differ by rank, and be 0. */
  gather(x: Memory, root: number, parts?: readonly Memory[]): Promise<void>;
  /** The root's `parts[r]` arrives as rank r's `x`; the other ranks need no parts. Lengths may differ by rank, and be 0. */
  scatter(x: Memory, root: number, parts?: readonly Memory[]): Promise<void>;
  send(x: Memory, to: number): Promise<void>;
  recv(x: Memory, from: number): Promise<void>;
  barrier(): Promise<void>;
  /** Ranks with the same color form a new group, ordered by key and then by rank. `undefined` joins none. All ranks call it. */
  split(color: number | undefined, key?: number): Promise<Group | undefined>;
  /** Ends the group with an error, here and on every other rank. */
  abort(reason: string): void;
  /** Waits for what is pending, then for the other ranks to close too, and frees the connections. Never rejects. */
  close(): Promise<void>;
  sent(): Sent;
}
