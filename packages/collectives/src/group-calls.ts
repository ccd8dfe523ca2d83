import {
  type BufferLike,
  type Communicator,
  kinds,
  type NativeFailure,
  reductions,
  retain,
} from "@terse/native-collectives";
import { checkDevice, checkSignal } from "./arguments.ts";
import { CallCounts } from "./call-counts.ts";
import { CollectiveError } from "./errors.ts";
import type { Failure } from "./failure.ts";
import type { Reduction } from "./group.ts";

/** One call of an operation, as the engines take it. */
export interface Operation {
  readonly kind: keyof typeof kinds;
  readonly parts: readonly BufferLike[];
  readonly incoming?: readonly BufferLike[];
  readonly op?: Reduction;
  readonly peer?: number;
  readonly note?: number;
  readonly guarantees?: number;
}

interface CallingGroup {
  readonly size: number;
  readonly who: string; // this rank, in errors
  readonly device: string | undefined; // besides the CPU
}

/**
 * The calls of one group on this rank, from their start on the native communicator to their end. It counts them, so
 * that a rank learns where another has closed the group without a call that this one waits for.
 */
export class GroupCalls {
  readonly #native: Communicator;
  readonly #group: CallingGroup;
  readonly #failure: Failure;
  readonly #counts: CallCounts;
  readonly #pending = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;
  #flushing = false;

  constructor(native: Communicator, group: CallingGroup, failure: Failure) {
    this.#native = native;
    this.#group = group;
    this.#failure = failure;
    this.#counts = new CallCounts(group.size);
  }

  /** Runs an operation with the other ranks. `check` throws where its arguments are wrong. */
  async operate(
    operation: Operation,
    signal: AbortSignal | undefined,
    check: (call: string) => void = () => {},
  ): Promise<number[] | undefined> {
    const { kind, parts, incoming = [], peer = -1 } = operation;
    this.#throwIfEnded();
    check(kind);
    checkSignal(signal, kind);
    checkDevice([...parts, ...incoming], this.#group.device, kind);
    const call = this.#counts.count(kind, peer, 1);
    const isBetweenTwo = kind === "send" || kind === "recv";
    if (signal?.aborted) {
      if (isBetweenTwo) {
        this.#counts.count(kind, peer, -1);
        throw signal.reason;
      }
      this.#cancelled(call, signal);
    }
    this.#checkClosedRanks();
    this.#throwIfEnded();
    let started: ReturnType<Communicator["operate"]>;
    try {
      started = this.#start(operation);
    } catch (error) {
      this.#counts.count(kind, peer, -1); // a call that throws does not count
      throw error;
    }
    if (isBetweenTwo) this.#flushSoon();
    let tooLate = false;
    const cancel = () => {
      tooLate = this.#native.cancel(started) === "started";
      if (tooLate) this.#cancelled(call, signal!);
    };
    signal?.addEventListener("abort", cancel);
    try {
      const notes = await this.#explained(started);
      if (tooLate) this.#throwIfEnded(); // it finished before the abort that its own signal caused
      return notes;
    } catch (error) {
      if ((error as NativeFailure).reason !== "cancelled") throw error;
      this.#counts.count(kind, peer, -1);
      throw signal!.reason;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Counts a split, whose number is returned, and checks that no rank has closed the group without it. */
  split(): number {
    this.#throwIfEnded();
    const number = this.#counts.mine.splits++;
    this.#checkClosedRanks();
    this.#throwIfEnded();
    return number;
  }

  /**
   * An operation without other ranks: a copy between the CPU and this group's device, or the registration of a buffer.
   */
  async runLocally(kind: "copy" | "registerBuffer", from: BufferLike, to?: BufferLike): Promise<void> {
    this.#throwIfEnded();
    await this.#explained(this.#start({ kind, parts: [from], incoming: to ? [to] : [] }));
  }

  /** Every operation on memory starts here. It keeps the memory until it ends, whatever the caller does with it. */
  #start({
    kind,
    parts,
    incoming = [],
    op = "sum",
    peer = -1,
    note = 0,
    guarantees = 0,
  }: Operation): ReturnType<Communicator["operate"]> {
    const retained = retain(...parts, ...incoming);
    const [first, second] = [retained.buffers.slice(0, parts.length), retained.buffers.slice(parts.length)];
    try {
      const operation = this.#native.operate(kinds[kind], reductions[op], peer, first, second, note, guarantees);
      operation.then(retained.release, (error: NativeFailure) => error.memoryInUse || retained.release());
      return operation;
    } catch (error) {
      retained.release();
      throw error;
    }
  }

  /** Awaits an operation. Rejects with the group's error, except where the operation was cancelled alone. */
  async #explained<T>(operation: Promise<T>): Promise<T> {
    try {
      return await this.whilePending(operation);
    } catch (error) {
      if (error === this.#failure.error || (error as NativeFailure).reason === "cancelled") throw error;
      throw await this.#failure.explain(error as NativeFailure);
    }
  }

  /** `close` waits for it. */
  async whilePending<T>(promise: Promise<T>): Promise<T> {
    this.#pending.add(promise);
    try {
      return await promise;
    } finally {
      this.#pending.delete(promise);
    }
  }

  /**
   * On engines that start sends and receives together: those that are called before the next microtask start as one.
   */
  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.#native.flush();
    });
  }

  #cancelled(call: string, { reason }: AbortSignal): void {
    const why = reason instanceof Error ? reason.message : String(reason);
    this.#failure.end("aborted", `${this.#group.who} cancelled ${call}: ${why}`, { cause: reason });
  }

  #throwIfEnded(): void {
    if (this.#failure.error) throw this.#failure.error;
    if (this.#closing) throw new CollectiveError("closed", `the group is closed on ${this.#group.who}`);
  }

  /** A rank has closed the group, after so many calls. */
  left(rank: number, calls: unknown): void {
    if (rank < 0) return;
    const problem = this.#counts.closed(rank, calls);
    if (problem === undefined) this.#checkClosedRanks();
    else
      this.#failure.end(
        "mismatch",
        `rank ${rank} sent invalid data when it closed the group: ${problem}; check that it runs the same version of terse`,
      );
  }

  /** Fails where this rank waits for an operation that a rank has not called before it closed the group. */
  #checkClosedRanks(): void {
    const unanswered = this.#counts.unanswered(this.#native.rank, this.#group.who);
    if (unanswered !== undefined) this.#failure.end("mismatch", unanswered);
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /** Waits until all calls have ended, and runs `leave` with the counts of this rank. Later calls throw. */
  close(leave: (counts: unknown) => Promise<void>): Promise<void> {
    this.#closing ??= (async () => {
      await Promise.allSettled(this.#pending);
      await leave(this.#counts.mine);
    })();
    return this.#closing;
  }
}
