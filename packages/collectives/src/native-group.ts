import { type BufferLike, type Communicator, checkOptions, guarantees } from "@terse/native-collectives";
import { show } from "@terse/options";
import {
  checkAllToAll,
  checkApart,
  checkEven,
  checkMemory,
  checkNote,
  checkPacked,
  checkParts,
  checkRank,
  checkReduction,
  checkRooted,
} from "./arguments.ts";
import { Failure } from "./failure.ts";
import type { Group, OperationOptions, Reduction, Sent } from "./group.ts";
import { GroupCalls } from "./group-calls.ts";
import type { Link } from "./link.ts";
import { checkValues } from "./rendezvous/check-value.ts";
import type { World, WorldGroup } from "./world.ts";

function signalOf(call: string, options: OperationOptions): AbortSignal | undefined {
  checkOptions(call, options, ["signal"]);
  return options.signal;
}

/** A `Group` whose operations run on native wire threads. */
export class NativeGroup implements Group, WorldGroup {
  readonly rank: number;
  readonly size: number;
  readonly name: string; // "world", or the path of splits from it
  readonly members: readonly number[]; // world ranks
  readonly world: World;
  readonly #native: Communicator;
  readonly #who: string; // this rank, in errors
  readonly #failure: Failure;
  readonly #calls: GroupCalls;

  constructor(native: Communicator, world: World, name: string, members: readonly number[]) {
    this.#native = native;
    this.world = world;
    this.name = name;
    this.members = members;
    this.rank = native.rank;
    this.size = native.size;
    const where = name === "world" ? "" : ` (in a group of the world's ranks ${members.join(", ")})`;
    this.#who = `rank ${native.rank}${where}`;
    this.#failure = new Failure({
      members,
      where,
      abort: (why) => native.abort(why),
      report: (error, certain) => world.report(this, error, certain),
    });
    this.#calls = new GroupCalls(native, { size: members.length, who: this.#who, device: world.device }, this.#failure);
    world.rendezvous.onLeave(name, (rank, calls) => this.#calls.left(members.indexOf(rank), calls));
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
    options: OperationOptions & { packed?: boolean } = {},
  ): Promise<void> {
    checkOptions("allReduce", options, ["signal", "packed"]);
    const { packed = false, signal } = options;
    const given = packed ? guarantees.packed : 0;
    await this.#calls.operate({ kind: "allReduce", parts: [x], op, guarantees: given }, signal, (call) => {
      checkMemory(x, call);
      checkReduction(x, op, call);
      if (packed) checkPacked(x, op, call);
    });
  }

  async reduceScatter(
    parts: readonly BufferLike[],
    op: Reduction = "sum",
    options: OperationOptions = {},
  ): Promise<void> {
    const signal = signalOf("reduceScatter", options);
    await this.#calls.operate({ kind: "reduceScatter", parts, op }, signal, (call) => {
      checkParts(parts, this.size, call);
      checkApart(parts, call);
      for (const part of parts) checkReduction(part, op, call);
    });
  }

  async allGather(parts: readonly BufferLike[], options: OperationOptions = {}): Promise<void> {
    const signal = signalOf("allGather", options);
    await this.#calls.operate({ kind: "allGather", parts }, signal, (call) => {
      checkParts(parts, this.size, call);
      checkApart(parts, call);
    });
  }

  async allToAll(
    outgoing: readonly BufferLike[],
    incoming: readonly BufferLike[],
    options: OperationOptions & { note?: number; even?: boolean } = {},
  ): Promise<number[]> {
    checkOptions("allToAll", options, ["signal", "note", "even"]);
    const { note = 0, even = false, signal } = options;
    const given = even ? guarantees.even : 0;
    const operation = { kind: "allToAll", parts: outgoing, incoming, note, guarantees: given } as const;
    const notes = await this.#calls.operate(operation, signal, (call) => {
      checkNote(note);
      checkParts(outgoing, this.size, call, "outgoing");
      checkParts(incoming, this.size, call, "incoming");
      checkAllToAll(outgoing, incoming, this.rank);
      if (even) checkEven(outgoing, incoming, call);
    });
    return notes!;
  }

  async broadcast(x: BufferLike, root: number, options: OperationOptions = {}): Promise<void> {
    const signal = signalOf("broadcast", options);
    await this.#calls.operate({ kind: "broadcast", parts: [x], peer: root }, signal, (call) => {
      checkMemory(x, call);
      checkRank(root, this.size, call);
    });
  }

  async gather(
    x: BufferLike,
    root: number,
    parts?: readonly BufferLike[],
    options: OperationOptions = {},
  ): Promise<void> {
    const signal = signalOf("gather", options);
    const incoming = root === this.rank ? (parts ?? []) : [];
    await this.#calls.operate({ kind: "gather", parts: [x], incoming, peer: root }, signal, (call) =>
      checkRooted(x, root, parts, this, call),
    );
  }

  async scatter(
    x: BufferLike,
    root: number,
    parts?: readonly BufferLike[],
    options: OperationOptions = {},
  ): Promise<void> {
    const signal = signalOf("scatter", options);
    const outgoing = root === this.rank ? (parts ?? []) : [];
    await this.#calls.operate({ kind: "scatter", parts: outgoing, incoming: [x], peer: root }, signal, (call) =>
      checkRooted(x, root, parts, this, call),
    );
  }

  send(x: BufferLike, to: number, options: OperationOptions = {}): Promise<void> {
    return this.#exchange("send", x, to, options);
  }

  recv(x: BufferLike, from: number, options: OperationOptions = {}): Promise<void> {
    return this.#exchange("recv", x, from, options);
  }

  async #exchange(kind: "send" | "recv", x: BufferLike, peer: number, options: OperationOptions): Promise<void> {
    const signal = signalOf(kind, options);
    await this.#calls.operate({ kind, parts: [x], peer }, signal, (call) => {
      checkMemory(x, call);
      checkRank(peer, this.size, call, this.rank);
    });
  }

  async barrier(options: OperationOptions = {}): Promise<void> {
    const signal = signalOf("barrier", options);
    await this.#calls.operate({ kind: "barrier", parts: [] }, signal);
  }

  async split(color: number | undefined, key = 0): Promise<Group | undefined> {
    if (color !== undefined && !Number.isInteger(color))
      throw new RangeError(`split: the color must be an integer or undefined, and is ${show(color)}`);
    if (!Number.isFinite(key)) throw new RangeError(`split: the key must be a number, and is ${show(key)}`);
    const name = `${this.name}/split-${this.#calls.split()}`;
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
    const native = await this.#calls.whilePending(opening);
    return native && new NativeGroup(native, this.world, inner, members);
  }

  abort(reason: string): void {
    if (!this.#calls.isClosing) this.#failure.end("aborted", `${this.#who} aborted the group: ${reason}`);
  }

  close(): Promise<void> {
    return this.#calls.close(async (counts) => {
      if (!this.#failure.error) await this.world.rendezvous.leave(this.name, this.members, counts);
      await this.#native.close();
      await this.world.closed(this);
    });
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

  /**
   * An operation without other ranks: a copy between the CPU and this group's device, or the registration of a buffer.
   */
  runLocally(kind: "copy" | "registerBuffer", from: BufferLike, to?: BufferLike): Promise<void> {
    return this.#calls.runLocally(kind, from, to);
  }
}
