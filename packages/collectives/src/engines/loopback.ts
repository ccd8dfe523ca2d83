import {
  type Communicator,
  checkOptions,
  collectives,
  faultKinds,
  type NativeFault,
  type NativeLink,
} from "@terse/native-collectives";
import { show } from "@terse/options";
import { CollectiveError, RankLostError } from "../errors.ts";
import type { Group } from "../group.ts";
import { type Link, linkOf, openLink } from "../link.ts";
import { checkSeconds, milliseconds } from "../milliseconds.ts";
import { NativeGroup } from "../native-group.ts";
import { listOfRanks } from "../rendezvous/list-of-ranks.ts";
import type { Rendezvous } from "../rendezvous/rendezvous.ts";
import type { World, WorldGroup } from "../world.ts";

/** Options of `loopback`. */
export interface LoopbackOptions {
  /** An operation that has not finished after so long fails. Default 1800. */
  timeoutSeconds?: number;
  /** Faults to inject. */
  faults?: readonly Fault[];
  /** Every rank has such a link: `100mbit,1ms`. */
  emulateLink?: Link | string | undefined;
}

/** A fault of `rank`. `at` is the number of a collective that it calls on the world's own group, counted from 1. */
export type Fault =
  /** It sleeps before the collective; without `at` before every operation, also send and recv. */
  | { kind: "delay"; rank: number; at?: number; milliseconds: number }
  /** The messages that it sends in this collective are lost: those to rank `to`, or all. It does not notice. */
  | { kind: "loss"; rank: number; at: number; to?: number }
  /** It dies instead of the collective. */
  | { kind: "death"; rank: number; at: number };

/** A world of `size` ranks in this process, each with a wire thread: for tests, and for many workers on one machine. */
export function loopback(size: number, options: LoopbackOptions = {}): Group[] {
  if (!Number.isInteger(size) || size < 1)
    throw new RangeError(`loopback: the size must be a whole number from 1 on, and is ${show(size)}`);
  checkOptions("loopback", options, ["timeoutSeconds", "faults", "emulateLink"] satisfies (keyof LoopbackOptions)[]);
  const { timeoutSeconds = 1800, faults = [], emulateLink } = options;
  checkSeconds({ timeoutSeconds });
  const link = emulateLink === undefined ? undefined : linkOf(emulateLink);
  const links = link ? Array.from({ length: size }, () => openLink(link)) : [];
  const native = faults.map((fault) => nativeFault(fault, size));
  const shared = new SharedState(timeoutSeconds, link, links);
  const natives = collectives().loopback(size, timeoutSeconds, native, links);
  const members = natives.map((_, rank) => rank);
  return natives.map((native, rank) => new NativeGroup(native, shared.worldOf(rank), "world", members));
}

function nativeFault(fault: Fault, size: number): NativeFault {
  const { kind, rank, at = 0, milliseconds = 0, to = -1 } = fault as Fault & { milliseconds?: number; to?: number };
  const refuse = (why: string) => new RangeError(`loopback: a fault ${why}: ${JSON.stringify(fault)}`);
  const isRank = (each: number) => Number.isInteger(each) && each >= 0 && each < size;
  if (!Object.hasOwn(faultKinds, kind)) throw refuse(`must be one of ${Object.keys(faultKinds).join(", ")}`);
  if (!isRank(rank) || (to !== -1 && !isRank(to))) throw refuse(`must name ranks from 0 to ${size - 1}`);
  if (!Number.isInteger(at) || at < (kind === "delay" ? 0 : 1))
    throw refuse("needs the number of a collective in `at`");
  if (!(milliseconds >= 0)) throw refuse("must delay by 0 milliseconds or more");
  return { kind: faultKinds[kind], rank, at, milliseconds, to };
}

/** An exchange of values that not all members have called yet. */
interface PendingCall {
  readonly values: Map<number, unknown>; // by rank
  readonly waiting: { finish(): void; fail(error: Error): void }[];
}

/** The state that the ranks of one loopback world share. */
class SharedState {
  readonly #timeoutSeconds: number;
  readonly #link: Link | undefined;
  readonly #links: readonly NativeLink[]; // by rank, or none
  readonly #groups = new Set<WorldGroup>();
  readonly #calls = new Map<string, PendingCall>();
  readonly #opened = new Map<string, { natives: Communicator[]; left: number }>();
  readonly #listeners = new Map<string, Map<number, (rank: number, value: unknown) => void>>();

  constructor(timeoutSeconds: number, link: Link | undefined, links: readonly NativeLink[]) {
    this.#timeoutSeconds = timeoutSeconds;
    this.#link = link;
    this.#links = links;
  }

  worldOf(rank: number): World {
    const rendezvous: Rendezvous = {
      allGather: async (key, members, value) => {
        const gathered = await this.#gather(rank, key, members, value);
        return members.map((member) => gathered.get(member));
      },
      allToAll: async (key, members, values) => {
        const gathered = await this.#gather(rank, key, members, values);
        return members.map((member) => (gathered.get(member) as unknown[])[members.indexOf(rank)]);
      },
      // When a rank's operations have ended, the other ranks have copied what they need from its memory.
      leave: async (group, _members, value) => {
        this.#listeners.get(group)?.delete(rank);
        for (const listener of this.#listeners.get(group)?.values() ?? []) listener(rank, value);
      },
      onLeave: (group, listener) => {
        if (!this.#listeners.has(group)) this.#listeners.set(group, new Map());
        this.#listeners.get(group)!.set(rank, listener);
      },
    };
    return {
      engine: "loopback",
      emulatedLink: this.#link,
      rendezvous,
      open: async (name, members) => this.#open(name, members, rank),
      opened: (group) => this.#groups.add(group),
      report: async (group, error) => {
        // A lost rank is lost to all its groups; any other error is between the ranks of one.
        const everywhere = error instanceof RankLostError;
        for (const other of this.#groups) if (everywhere || other.name === group.name) other.fail(error);
        for (const [key, { waiting }] of this.#calls)
          if (everywhere || key.startsWith(`${group.name}/`)) for (const each of waiting) each.fail(error);
      },
      closed: async (group) => {
        this.#groups.delete(group);
      },
    };
  }

  #open(name: string, members: readonly number[], rank: number): Communicator {
    let opened = this.#opened.get(name);
    if (!opened) {
      const links = this.#links.length > 0 ? members.map((member) => this.#links[member]!) : [];
      const natives = collectives().loopback(members.length, this.#timeoutSeconds, [], links);
      opened = { natives, left: members.length };
      this.#opened.set(name, opened);
    }
    if (--opened.left === 0) this.#opened.delete(name);
    return opened.natives[members.indexOf(rank)]!;
  }

  async #gather(rank: number, key: string, members: readonly number[], value: unknown): Promise<Map<number, unknown>> {
    const call: PendingCall = this.#calls.get(key) ?? { values: new Map(), waiting: [] };
    this.#calls.set(key, call);
    call.values.set(rank, value);
    if (call.values.size < members.length) {
      const timer = setTimeout(() => this.#expire(key, members), milliseconds(this.#timeoutSeconds));
      const all = new Promise<void>((finish, fail) => call.waiting.push({ finish, fail }));
      await all.finally(() => clearTimeout(timer));
    } else {
      this.#calls.delete(key);
      for (const each of call.waiting) each.finish();
    }
    return call.values;
  }

  #expire(key: string, members: readonly number[]): void {
    const { values, waiting } = this.#calls.get(key)!;
    const missing = members.filter((member) => !values.has(member));
    const sentence = `${listOfRanks(missing)} did not reach ${key} within ${this.#timeoutSeconds} s; check what it does, or raise timeoutSeconds`;
    for (const each of waiting) each.fail(new CollectiveError("timeout", sentence));
  }
}
