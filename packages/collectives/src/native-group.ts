import {
  type BufferLike,
  type Communicator,
  guarantees,
  kinds,
  type NativeFailure,
  reductions,
  retain,
} from "@terse/native-collectives";
import {
  checkAllToAll,
  checkDevice,
  checkEven,
  checkMemory,
  checkNote,
  checkPacked,
  checkParts,
  checkRank,
  checkReduction,
  checkRooted,
} from "./arguments.ts";
import { CollectiveError, RankLostError } from "./errors.ts";
import type { Group, OperationOptions, Reduction, Sent } from "./group.ts";
import type { Link } from "./link.ts";
import { areCounts, checkValues, isCount, misfit } from "./rendezvous/check-value.ts";
import type { Rendezvous } from "./rendezvous/rendezvous.ts";

/** What a group needs to know of the world it is part of. */
export interface World {
  readonly engine: string;
  readonly emulatedLink: Link | undefined;
  /** The device, besides the CPU, whose memory it takes: "cuda:0". */
  readonly device?: string;
  readonly rendezvous: Rendezvous;
  /** This rank's end of a new group; `members` are world ranks. */
  open(name: string, members: readonly number[]): Promise<Communicator>;
  /**
   * For engines that split a group by a collective of their own. It is queued among the operations now. The result opens the new group
   * when the ranks have exchanged their colors: `color` counts the colors from 0, and is −1 for a rank in no group; `members` are the
   * world ranks of this rank's color, in their new order.
   */
  split?(
    parent: Communicator,
  ): ((name: string, members: readonly number[], color: number) => Promise<Communicator | undefined>) | undefined;
  /** From now on the world calls `fail` on the group when it fails on another rank. */
  opened(group: NativeGroup): void;
  /** Reports to the other ranks that this group has failed here. `certain` is false where another rank may be the cause. */
  report(group: NativeGroup, error: Error, certain: boolean): Promise<void>;
  /** The group is closed and its connections are gone. */
  closed(group: NativeGroup): Promise<void>;
}

/** How often a rank has called each kind of operation. It sends the counts to the other ranks when it closes the group. */
interface CallCounts {
  collectives: number;
  splits: number;
  sends: number[]; // to each rank
  recvs: number[]; // from each rank
}

/** A `Group` whose operations run on native wire threads. */
export class NativeGroup implements Group {
  readonly rank: number;
  readonly size: number;
  readonly name: string; // "world", or the path of splits from it
  readonly members: readonly number[]; // world ranks
  readonly world: World;
  #native: Communicator;
  #failure: Error | undefined;
  #explanation: Promise<Error> | undefined;
  #closing: Promise<void> | undefined;
  #pending = new Set<Promise<unknown>>();
  #calls: CallCounts;
  #closedRanks = new Map<number, CallCounts>(); // the calls of the ranks that have closed the group
  #flushing = false;

  constructor(native: Communicator, world: World, name: string, members: readonly number[]) {
    this.#native = native;
    this.world = world;
    this.name = name;
    this.members = members;
    this.rank = native.rank;
    this.size = native.size;
    this.#calls = { collectives: 0, splits: 0, sends: members.map(() => 0), recvs: members.map(() => 0) };
    world.rendezvous.onLeave(name, (rank, calls) => this.#left(members.indexOf(rank), calls));
    world.opened(this);
  }

  get engine(): string {
    return this.world.engine;
  }

  get device(): string | undefined {
    return this.world.device;
  }

  get emulatedLink(): Link | undefined {
    return this.world.emulatedLink;
  }

  async allReduce(
    x: BufferLike,
    op: Reduction = "sum",
    { packed = false, signal }: OperationOptions & { packed?: boolean } = {},
  ): Promise<void> {
    await this.#operate("allReduce", [x], { op, guarantees: packed ? guarantees.packed : 0, signal }, () => {
      checkMemory(x, "allReduce");
      checkReduction(x, op, "allReduce");
      if (packed) checkPacked(x, op, "allReduce");
    });
  }

  async reduceScatter(
    parts: readonly BufferLike[],
    op: Reduction = "sum",
    options: OperationOptions = {},
  ): Promise<void> {
    await this.#operate("reduceScatter", parts, { ...options, op }, () => {
      checkParts(parts, this.size, "reduceScatter");
      for (const part of parts) checkReduction(part, op, "reduceScatter");
    });
  }

  async allGather(parts: readonly BufferLike[], options: OperationOptions = {}): Promise<void> {
    await this.#operate("allGather", parts, options, () => checkParts(parts, this.size, "allGather"));
  }

  async allToAll(
    outgoing: readonly BufferLike[],
    incoming: readonly BufferLike[],
    { note = 0, even = false, signal }: OperationOptions & { note?: number; even?: boolean } = {},
  ): Promise<number[]> {
    const given = even ? guarantees.even : 0;
    const notes = await this.#operate("allToAll", outgoing, { incoming, note, guarantees: given, signal }, () => {
      checkNote(note);
      checkParts(outgoing, this.size, "allToAll", "outgoing");
      checkParts(incoming, this.size, "allToAll", "incoming");
      checkAllToAll(outgoing, incoming, this.rank);
      if (even) checkEven(outgoing, incoming, "allToAll");
    });
    return notes!;
  }

  async broadcast(x: BufferLike, root: number, options: OperationOptions = {}): Promise<void> {
    await this.#operate("broadcast", [x], { ...options, peer: root }, () => {
      checkMemory(x, "broadcast");
      checkRank(root, this.size, "broadcast");
    });
  }

  async gather(
    x: BufferLike,
    root: number,
    parts?: readonly BufferLike[],
    options: OperationOptions = {},
  ): Promise<void> {
    const arriving = root === this.rank ? (parts ?? []) : [];
    await this.#operate("gather", [x], { ...options, peer: root, incoming: arriving }, () =>
      checkRooted(x, root, parts, this, "gather"),
    );
  }

  async scatter(
    x: BufferLike,
    root: number,
    parts?: readonly BufferLike[],
    options: OperationOptions = {},
  ): Promise<void> {
    const leaving = root === this.rank ? (parts ?? []) : [];
    await this.#operate("scatter", leaving, { ...options, peer: root, incoming: [x] }, () =>
      checkRooted(x, root, parts, this, "scatter"),
    );
  }

  async send(x: BufferLike, to: number, options: OperationOptions = {}): Promise<void> {
    await this.#operate("send", [x], { ...options, peer: to }, () => {
      checkMemory(x, "send");
      checkRank(to, this.size, "send", this.rank);
    });
  }

  async recv(x: BufferLike, from: number, options: OperationOptions = {}): Promise<void> {
    await this.#operate("recv", [x], { ...options, peer: from }, () => {
      checkMemory(x, "recv");
      checkRank(from, this.size, "recv", this.rank);
    });
  }

  async barrier(options: OperationOptions = {}): Promise<void> {
    await this.#operate("barrier", [], options, () => {});
  }

  async split(color: number | undefined, key = 0): Promise<Group | undefined> {
    if (color !== undefined && !Number.isInteger(color))
      throw new RangeError(`split: the color must be an integer or undefined, and is ${color}`);
    if (!Number.isFinite(key)) throw new RangeError(`split: the key must be a number, and is ${key}`);
    this.#throwIfEnded();
    const name = `${this.name}/split-${this.#calls.splits++}`;
    this.#checkClosedRanks();
    this.#throwIfEnded();
    const open = this.world.split?.(this.#native);
    const answers = await this.#orFail(async () =>
      checkValues<{ color: number | null; key: number }>(
        await this.world.rendezvous.allGather(name, this.members, { color: color ?? null, key }),
        this.members,
        "its color",
        () => ({ color: (value) => value === null || Number.isInteger(value), key: Number.isFinite }),
      ),
    );
    const members = answers
      .map((answer, rank) => ({ ...answer, rank }))
      .filter((answer) => color !== undefined && answer.color === color)
      .sort((a, b) => a.key - b.key || a.rank - b.rank)
      .map(({ rank }) => this.members[rank]!);
    const inner = `${name}/${color}`;
    if (!open) {
      if (color === undefined) return undefined;
      return new NativeGroup(await this.#orFail(() => this.world.open(inner, members)), this.world, inner, members);
    }
    const colors = [...new Set(answers.map((answer) => answer.color))].filter((each) => each !== null);
    const opening = this.#orFail(() => open(inner, members, colors.indexOf(color ?? Number.NaN)));
    this.#pending.add(opening);
    try {
      const native = await opening;
      return native && new NativeGroup(native, this.world, inner, members);
    } finally {
      this.#pending.delete(opening);
    }
  }

  abort(reason: string): void {
    if (this.#failure || this.#closing) return;
    const error = new CollectiveError("aborted", `${this.#who()} aborted the group: ${reason}`);
    this.fail(error);
    void this.world.report(this, error, true);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  sent(): Sent {
    return this.#native.sent();
  }

  /** Ends the group with `error`, unless it has failed before. */
  fail(error: Error): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#native.abort(error.message);
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  async #operate(
    kind: keyof typeof kinds,
    parts: readonly BufferLike[],
    options: OperationOptions & {
      op?: Reduction;
      peer?: number;
      incoming?: readonly BufferLike[];
      note?: number;
      guarantees?: number;
    },
    check: () => void,
  ): Promise<number[] | undefined> {
    this.#throwIfEnded();
    check();
    const { op = "sum", peer = -1, incoming = [], note = 0, guarantees = 0, signal } = options;
    checkDevice([...parts, ...incoming], this.world.device, kind);
    const call = this.#count(kind, peer, 1);
    if (signal?.aborted) {
      if (kind === "send" || kind === "recv") {
        this.#count(kind, peer, -1);
        throw signal.reason;
      }
      this.#cancelled(call, signal);
    }
    this.#checkClosedRanks();
    this.#throwIfEnded();
    let operation: ReturnType<Communicator["operate"]>;
    try {
      operation = this.#start(kind, reductions[op], peer, parts, incoming, note, guarantees);
    } catch (error) {
      this.#count(kind, peer, -1); // a call that throws does not count
      throw error;
    }
    if (kind === "send" || kind === "recv") this.#flushSoon();
    this.#pending.add(operation);
    let tooLate = false;
    const cancel = () => {
      tooLate = this.#native.cancel(operation) === "started";
      if (tooLate) this.#cancelled(call, signal!);
    };
    signal?.addEventListener("abort", cancel);
    try {
      const notes = await operation;
      if (tooLate) this.#throwIfEnded(); // it finished before the abort that its own signal caused
      return notes;
    } catch (error) {
      if (error === this.#failure) throw error;
      if ((error as NativeFailure).reason !== "cancelled") throw await this.#explain(error as NativeFailure);
      this.#count(kind, peer, -1);
      throw signal!.reason;
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#pending.delete(operation);
    }
  }

  /** Every operation on memory starts here. It keeps the memory until it ends, whatever the caller does with the tensors and arrays. */
  #start(
    kind: keyof typeof kinds,
    reduction: number,
    peer: number,
    parts: readonly BufferLike[],
    incoming: readonly BufferLike[],
    note: number,
    given: number,
  ): ReturnType<Communicator["operate"]> {
    const held = retain(...parts, ...incoming);
    const [first, second] = [held.buffers.slice(0, parts.length), held.buffers.slice(parts.length)];
    try {
      const operation = this.#native.operate(kinds[kind], reduction, peer, first, second, note, given);
      operation.then(held.release, (error: NativeFailure) => error.memoryInUse || held.release());
      return operation;
    } catch (error) {
      held.release();
      throw error;
    }
  }

  /** On engines that start sends and receives together: those that are called before the next microtask start as one. */
  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.#native.flush();
    });
  }

  /** An operation without other ranks: a copy between the CPU and this group's device, or the registration of a buffer. */
  async runLocally(kind: "copy" | "registerBuffer", from: BufferLike, to?: BufferLike): Promise<void> {
    this.#throwIfEnded();
    const operation = this.#start(kind, reductions.sum, -1, [from], to ? [to] : [], 0, 0);
    this.#pending.add(operation);
    try {
      await operation;
    } catch (error) {
      throw error === this.#failure ? error : await this.#explain(error as NativeFailure);
    } finally {
      this.#pending.delete(operation);
    }
  }

  /** Counts a call (`step` 1), or takes it back (−1). Returns how errors name this call. */
  #count(kind: keyof typeof kinds, peer: number, step: 1 | -1): string {
    const calls = this.#calls;
    if (kind === "send") calls.sends[peer]! += step;
    else if (kind === "recv") calls.recvs[peer]! += step;
    else calls.collectives += step;
    if (kind === "send") return `send number ${calls.sends[peer]} to rank ${peer}`;
    if (kind === "recv") return `receive number ${calls.recvs[peer]} from rank ${peer}`;
    return `${kind.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} number ${calls.collectives}`;
  }

  #cancelled(call: string, { reason }: AbortSignal): void {
    if (this.#failure) return;
    const why = reason instanceof Error ? reason.message : String(reason);
    const error = new CollectiveError("aborted", `${this.#who()} cancelled ${call}: ${why}`, { cause: reason });
    this.fail(error);
    void this.world.report(this, error, true);
  }

  #throwIfEnded(): void {
    if (this.#failure) throw this.#failure;
    if (this.#closing) throw new CollectiveError("closed", `the group is closed on ${this.#who()}`);
  }

  #left(rank: number, calls: unknown): void {
    if (rank < 0) return;
    const [sends, recvs] = [areCounts(this.size), areCounts(this.size)];
    const problem = misfit(calls, { collectives: isCount, splits: isCount, sends, recvs });
    if (problem === undefined) {
      this.#closedRanks.set(rank, calls as CallCounts);
      this.#checkClosedRanks();
    }
    if (problem === undefined || this.#failure) return;
    const error = new CollectiveError(
      "mismatch",
      `rank ${rank} sent invalid data when it closed the group: ${problem}; check that it runs the same version of terse`,
    );
    this.fail(error);
    void this.world.report(this, error, true);
  }

  /** Fails where this rank waits for an operation that a rank has not called before it closed the group. */
  #checkClosedRanks(): void {
    const mine = this.#calls;
    for (const [rank, theirs] of this.#closedRanks) {
      if (this.#failure) return;
      const missing =
        theirs.collectives < mine.collectives
          ? `after ${theirs.collectives} collectives, and ${this.#who()} has called ${mine.collectives}`
          : theirs.splits < mine.splits
            ? `without the split that ${this.#who()} has called`
            : theirs.sends[this.rank]! < mine.recvs[rank]!
              ? `without the send for a receive of ${this.#who()}`
              : theirs.recvs[this.rank]! < mine.sends[rank]!
                ? `without the receive for a send of ${this.#who()}`
                : undefined;
      if (missing === undefined) continue;
      const error = new CollectiveError(
        "mismatch",
        `rank ${rank} closed the group ${missing}; every rank must call the same operations before it closes`,
      );
      this.fail(error);
      void this.world.report(this, error, true);
    }
  }

  /** The error that every pending and later call rejects with: the root cause, where a rank reports it within a second. */
  #explain(native: NativeFailure): Promise<Error> {
    this.#explanation ??= (async () => {
      if (!this.#failure) {
        const error =
          native.reason === "lost"
            ? new RankLostError(this.members[native.peer]!, native.message)
            : new CollectiveError(reasonOf(native), `${native.message}${this.#where()}`);
        await this.world.report(this, error, native.reason !== "transport");
        this.fail(error);
      }
      const failure = this.#failure!;
      if (failure.cause === undefined && failure.message !== native.message) failure.cause = native;
      return failure;
    })();
    return this.#explanation;
  }

  /** A rejection ends the group. */
  async #orFail<T>(wait: () => Promise<T>): Promise<T> {
    try {
      return await wait();
    } catch (error) {
      if (!this.#failure) {
        const failure = failureOf(error as Error);
        this.fail(failure);
        await this.world.report(this, failure, true);
      }
      throw this.#failure;
    }
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#pending);
    if (!this.#failure) await this.world.rendezvous.leave(this.name, this.members, this.#calls);
    await this.#native.close();
    await this.world.closed(this);
  }

  #who(): string {
    return `rank ${this.rank}${this.#where()}`;
  }

  #where(): string {
    return this.name === "world" ? "" : ` (in a group of the world's ranks ${this.members.join(", ")})`;
  }
}

const reasonOf = ({ reason }: NativeFailure): CollectiveError["reason"] =>
  reason === "argument" || reason === "cancelled" || reason === "lost" ? "closed" : reason;

/** The group's error where its ranks could not open a group that is split from it. */
function failureOf(error: Error): Error {
  if (error instanceof CollectiveError || error instanceof RankLostError) return error;
  const native = (error.cause ?? error) as Partial<NativeFailure>;
  const reason = native.reason ? reasonOf(native as NativeFailure) : "timeout";
  return new CollectiveError(reason, error.message, { cause: error });
}
