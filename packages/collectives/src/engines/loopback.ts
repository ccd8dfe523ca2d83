import {
  type Communicator,
  collectives,
  faultKinds,
  type NativeFault,
  type NativeLink,
} from "@terse/native-collectives";
import { CollectiveError, RankLostError } from "../errors.ts";
import type { Group } from "../group.ts";
import { type Link, linkOf, openLink } from "../link.ts";
import type { Meeting } from "../meeting.ts";
import { checkSeconds, milliseconds } from "../milliseconds.ts";
import { NativeGroup, type World } from "../native-group.ts";

export interface LoopbackOptions {
  /** An operation that has not finished after so long fails. Default 1800. */
  timeoutSeconds?: number;
  /** What goes wrong, on purpose. */
  faults?: readonly Fault[];
  /** Every rank has such a link: `100mbit,1ms`. */
  emulateLink?: Link | string | undefined;
}

/** `at` is the number of a collective that `rank` calls on the world's own group, counted from 1. */
export type Fault =
  /** Sleeps first; without `at` before every operation, those of send and recv too. */
  | { kind: "delay"; rank: number; at?: number; milliseconds: number }
  /** What it sends in this operation never comes, to rank `to` or to anybody; it does not notice. */
  | { kind: "loss"; rank: number; at: number; to?: number }
  /** Vanishes instead. */
  | { kind: "death"; rank: number; at: number };

/** A world of `size` ranks in this process, with a wire thread each: for tests, and for many workers on one machine. */
export function loopback(size: number, options: LoopbackOptions = {}): Group[] {
  if (!Number.isInteger(size) || size < 1)
    throw new RangeError(`loopback: the size must be a whole number from 1 on, and is ${size}`);
  const { timeoutSeconds = 1800, faults = [], emulateLink } = options;
  checkSeconds({ timeoutSeconds });
  const link = emulateLink === undefined ? undefined : linkOf(emulateLink);
  const links = link ? Array.from({ length: size }, () => openLink(link)) : [];
  const native = faults.map((fault) => nativeFault(fault, size));
  const shared = new Shared(timeoutSeconds, link, links);
  const natives = collectives().loopback(size, timeoutSeconds, native, links);
  const members = natives.map((_, rank) => rank);
  return natives.map((native, rank) => new NativeGroup(native, shared.worldOf(rank), "world", members));
}

function nativeFault(fault: Fault, size: number): NativeFault {
  const { kind, rank, at = 0, milliseconds = 0, to = -1 } = fault as Fault & { milliseconds?: number; to?: number };
  const refuse = (why: string) => new RangeError(`loopback: a fault ${why}: ${JSON.stringify(fault)}`);
  const isRank = (each: number) => Number.isInteger(each) && each >= 0 && each < size;
  if (!Object.hasOwn(faultKinds, kind)) throw refuse(`is one of ${Object.keys(faultKinds).join(", ")}`);
  if (!isRank(rank) || (to !== -1 && !isRank(to))) throw refuse(`happens among ranks 0 to ${size - 1}`);
  if (!Number.isInteger(at) || at < (kind === "delay" ? 0 : 1)) throw refuse("has the number of a collective as at");
  if (!(milliseconds >= 0)) throw refuse("delays by 0 milliseconds or more");
  return { kind: faultKinds[kind], rank, at, milliseconds, to };
}

interface Gathering {
  readonly come: Map<number, unknown>;
  readonly waiting: { finish(): void; fail(error: Error): void }[];
}

/** What the ranks of one loopback world share. */
class Shared {
  readonly #timeoutSeconds: number;
  readonly #link: Link | undefined;
  readonly #links: readonly NativeLink[]; // by rank, or none
  readonly #groups = new Set<NativeGroup>();
  readonly #gatherings = new Map<string, Gathering>();
  readonly #opened = new Map<string, { natives: Communicator[]; left: number }>();
  readonly #leaving = new Map<string, Map<number, (rank: number, value: unknown) => void>>();

  constructor(timeoutSeconds: number, link: Link | undefined, links: readonly NativeLink[]) {
    this.#timeoutSeconds = timeoutSeconds;
    this.#link = link;
    this.#links = links;
  }

  worldOf(rank: number): World {
    const meeting: Meeting = {
      gather: async (key, members, value) => {
        const come = await this.#gather(rank, key, members, value);
        return members.map((member) => come.get(member));
      },
      trade: async (key, members, values) => {
        const come = await this.#gather(rank, key, members, values);
        return members.map((member) => (come.get(member) as unknown[])[members.indexOf(rank)]);
      },
      // Whatever another rank still needs from this one was copied when this one's operations ended.
      leave: async (group, _members, value) => {
        this.#leaving.get(group)?.delete(rank);
        for (const heard of this.#leaving.get(group)?.values() ?? []) heard(rank, value);
      },
      onLeave: (group, heard) => {
        if (!this.#leaving.has(group)) this.#leaving.set(group, new Map());
        this.#leaving.get(group)!.set(rank, heard);
      },
    };
    return {
      engine: "loopback",
      emulatedLink: this.#link,
      meeting,
      open: async (name, members) => this.#open(name, members, rank),
      opened: (group) => this.#groups.add(group),
      report: async (group, error) => {
        // A lost rank is lost to all its groups; any other error is between the ranks of one.
        const everywhere = error instanceof RankLostError;
        for (const other of this.#groups) if (everywhere || other.name === group.name) other.fail(error);
        for (const [key, { waiting }] of this.#gatherings)
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
    const gathering: Gathering = this.#gatherings.get(key) ?? { come: new Map(), waiting: [] };
    this.#gatherings.set(key, gathering);
    gathering.come.set(rank, value);
    if (gathering.come.size < members.length) {
      const timer = setTimeout(() => this.#expire(key, members), milliseconds(this.#timeoutSeconds));
      const all = new Promise<void>((finish, fail) => gathering.waiting.push({ finish, fail }));
      await all.finally(() => clearTimeout(timer));
    } else {
      this.#gatherings.delete(key);
      for (const each of gathering.waiting) each.finish();
    }
    return gathering.come;
  }

  #expire(key: string, members: readonly number[]): void {
    const { come, waiting } = this.#gatherings.get(key)!;
    const missing = members.filter((member) => !come.has(member));
    const who = `rank${missing.length > 1 ? "s" : ""} ${missing.join(", ")}`;
    const sentence = `${who} did not come to ${key} within ${this.#timeoutSeconds} s; see what it does, or allow more (timeoutSeconds)`;
    for (const each of waiting) each.fail(new CollectiveError("timeout", sentence));
  }
}
