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
import { CallCounts } from "./call-counts.ts";
import { CollectiveError } from "./errors.ts";
import { Failure } from "./failure.ts";
import type { Group, OperationOptions, Reduction, Sent } from "./group.ts";
import type { Link } from "./link.ts";
import { checkValues } from "./rendezvous/check-value.ts";
import type { World, WorldGroup } from "./world.ts";

/** One call of an operation, as the engines take it. */
interface Operation {
  readonly kind: keyof typeof kinds;
  readonly parts: readonly BufferLike[];
  readonly incoming?: readonly BufferLike[];
  readonly op?: Reduction;
  readonly peer?: number;
  readonly note?: number;
  readonly guarantees?: number;
}

/** A `Group` whose operations run on native wire threads. */
export class NativeGroup implements Group, WorldGroup {
  readonly rank: number;
  readonly size: number;
  readonly name: string; // "world", or the path of splits from it
  readonly members: readonly number[]; // world ranks
  readonly world: World;
  readonly #native: Communicator;
  readonly #where: string; // in errors
  readonly #failure: Failure;
  readonly #calls: CallCounts;
  readonly #pending = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;
  #flushing = false;

  constructor(native: Communicator, world: World, name: string, members: readonly number[]) {
    this.#native = native;
    this.world = world;
    this.name = name;
    this.members = members;
    this.rank = native.rank;
    this.size = native.size;
    this.#calls = new CallCounts(members.length);
    this.#where = name === "world" ? "" : ` (in a group of the world's ranks ${members.join(", ")})`;
    this.#failure = new Failure({
      members,
      where: this.#where,
      abort: (why) => native.abort(why),
      report: (error, certain) => world.report(this, error, certain),
    });
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
    const given = packed ? guarantees.packed : 0;
    await this.#operate({ kind: "allReduce", parts: [x], op, guarantees: given }, signal, (call) => {
      checkMemory(x, call);
      checkReduction(x, op, call);
      if (packed) checkPacked(x, op, call);
    });
  }

  async reduceScatter(
    parts: readonly BufferLike[],
    op: Reduction = "sum",
    { signal }: OperationOptions = {},
  ): Promise<void> {
    await this.#operate({ kind: "reduceScatter", parts, op }, signal, (call) => {
      checkParts(parts, this.size, call);
      for (const part of parts) checkReduction(part, op, call);
    });
  }

  async allGather(parts: readonly BufferLike[], { signal }: OperationOptions = {}): Promise<void> {
    await this.#operate({ kind: "allGather", parts }, signal, (call) => checkParts(parts, this.size, call));
  }

  async allToAll(
    outgoing: readonly BufferLike[],
    incoming: readonly BufferLike[],
    { note = 0, even = false, signal }: OperationOptions & { note?: number; even?: boolean } = {},
  ): Promise<number[]> {
    const given = even ? guarantees.even : 0;
    const operation = { kind: "allToAll", parts: outgoing, incoming, note, guarantees: given } as const;
    const notes = await this.#operate(operation, signal, (call) => {
      checkNote(note);
      checkParts(outgoing, this.size, call, "outgoing");
      checkParts(incoming, this.size, call, "incoming");
      checkAllToAll(outgoing, incoming, this.rank);
      if (even) checkEven(outgoing, incoming, call);
    });
    return notes!;
  }

  async broadcast(x: BufferLike, root: number, { signal }: OperationOptions = {}): Promise<void> {
    await this.#operate({ kind: "broadcast", parts: [x], peer: root }, signal, (call) => {
      checkMemory(x, call);
      checkRank(root, this.size, call);
    });
  }

  async gather(
    x: BufferLike,
    root: number,
    parts?: readonly BufferLike[],
    { signal }: OperationOptions = {},
  ): Promise<void> {
    const incoming = root === this.rank ? (parts ?? []) : [];
    await this.#operate({ kind: "gather", parts: [x], incoming, peer: root }, signal, (call) =>
      checkRooted(x, root, parts, this, call),
    );
  }

  async scatter(
    x: BufferLike,
    root: number,
    parts?: readonly BufferLike[],
    { signal }: OperationOptions = {},
  ): Promise<void> {
    const outgoing = root === this.rank ? (parts ?? []) : [];
    await this.#operate({ kind: "scatter", parts: outgoing, incoming: [x], peer: root }, signal, (call) =>
      checkRooted(x, root, parts, this, call),
    );
  }

  send(x: BufferLike, to: number, options: OperationOptions = {}): Promise<void> {
    return this.#exchange("send", x, to, options);
  }

  recv(x: BufferLike, from: number, options: OperationOptions = {}): Promise<void> {
    return this.#exchange("recv", x, from, options);
  }

  async #exchange(kind: "send" | "recv", x: BufferLike, peer: number, { signal }: OperationOptions): Promise<void> {
    await this.#operate({ kind, parts: [x], peer }, signal, (call) => {
      checkMemory(x, call);
      checkRank(peer, this.size, call, this.rank);
    });
  }

  async barrier({ signal }: OperationOptions = {}): Promise<void> {
    await this.#operate({ kind: "barrier", parts: [] }, signal);
  }

  async split(color: number | undefined, key = 0): Promise<Group | undefined> {
    if (color !== undefined && !Number.isInteger(color))
      throw new RangeError(`split: the color must be an integer or undefined, and is ${color}`);
    if (!Number.isFinite(key)) throw new RangeError(`split: the key must be a number, and is ${key}`);
    this.#throwIfEnded();
    const name = `${this.name}/split-${this.#calls.mine.splits++}`;
    this.#checkClosedRanks();
    this.#throwIfEnded();
    const open = this.world.split?.(this.#native);
    const answers = await this.#failure.ifRejected(async () =>
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
      return new NativeGroup(
        await this.#failure.ifRejected(() => this.world.open(inner, members)),
        this.world,
        inner,
        members,
      );
    }
    const colors = [...new Set(answers.map((answer) => answer.color))].filter((each) => each !== null);
    const opening = this.#failure.ifRejected(() => open(inner, members, colors.indexOf(color ?? Number.NaN)));
    const native = await this.#whilePending(opening);
    return native && new NativeGroup(native, this.world, inner, members);
  }

  abort(reason: string): void {
    if (!this.#closing) this.#failure.end("aborted", `${this.#who} aborted the group: ${reason}`);
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
    this.#failure.fail(error);
  }

  get failure(): Error | undefined {
    return this.#failure.error;
  }

  async #operate(
    operation: Operation,
    signal: AbortSignal | undefined,
    check: (call: string) => void = () => {},
  ): Promise<number[] | undefined> {
    const { kind, parts, incoming = [], peer = -1 } = operation;
    this.#throwIfEnded();
    check(kind);
    checkDevice([...parts, ...incoming], this.world.device, kind);
    const call = this.#calls.count(kind, peer, 1);
    const isBetweenTwo = kind === "send" || kind === "recv";
    if (signal?.aborted) {
      if (isBetweenTwo) {
        this.#calls.count(kind, peer, -1);
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
      this.#calls.count(kind, peer, -1); // a call that throws does not count
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
      this.#calls.count(kind, peer, -1);
      throw signal!.reason;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
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
      return await this.#whilePending(operation);
    } catch (error) {
      if (error === this.#failure.error || (error as NativeFailure).reason === "cancelled") throw error;
      throw await this.#failure.explain(error as NativeFailure);
    }
  }

  /** `close` waits for it. */
  async #whilePending<T>(promise: Promise<T>): Promise<T> {
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
    this.#failure.end("aborted", `${this.#who} cancelled ${call}: ${why}`, { cause: reason });
  }

  #throwIfEnded(): void {
    if (this.#failure.error) throw this.#failure.error;
    if (this.#closing) throw new CollectiveError("closed", `the group is closed on ${this.#who}`);
  }

  /** A rank has closed the group, after so many calls. */
  #left(rank: number, calls: unknown): void {
    if (rank < 0) return;
    const problem = this.#calls.closed(rank, calls);
    if (problem === undefined) this.#checkClosedRanks();
    else
      this.#failure.end(
        "mismatch",
        `rank ${rank} sent invalid data when it closed the group: ${problem}; check that it runs the same version of terse`,
      );
  }

  /** Fails where this rank waits for an operation that a rank has not called before it closed the group. */
  #checkClosedRanks(): void {
    const unanswered = this.#calls.unanswered(this.rank, this.#who);
    if (unanswered !== undefined) this.#failure.end("mismatch", unanswered);
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#pending);
    if (!this.#failure.error) await this.world.rendezvous.leave(this.name, this.members, this.#calls.mine);
    await this.#native.close();
    await this.world.closed(this);
  }

  get #who(): string {
    return `rank ${this.rank}${this.#where}`;
  }
}
