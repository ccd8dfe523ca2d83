import { setTimeout as sleep } from "node:timers/promises";
import type { Communicator, NativeFailure } from "@terse/native-collectives";
import { CollectiveError, RankLostError, RendezvousError } from "../errors.ts";
import type { Link } from "../link.ts";
import type { Meeting } from "../meeting.ts";
import type { NativeGroup, World } from "../native-group.ts";
import type { AbortReason, Verdict } from "../rendezvous/protocol.ts";

/** Where ranks of several processes meet, and tell each other why a group is over. */
export interface WorldMeeting extends Meeting {
  readonly rank: number;
  /** After so long without a sign of a rank it is lost. */
  readonly silenceSeconds: number;
  abort(group: string, reason: AbortReason, message: string): void;
  /** Resolves when this rank is heard to live. */
  beating(): Promise<void>;
}

/** What a rank tells another one when they are about to connect. */
export interface Contact {
  blob: string; // the engine's address, base64
}

const verdictPatience = 1000; // ms that a broken connection waits for the news of who is to blame

/** One rank's world: its groups, and what the rendezvous decides about them. An engine says how a group is opened. */
export abstract class RendezvousWorld implements World {
  abstract readonly engine: string;
  abstract readonly emulatedLink: Link | undefined;
  readonly meeting: WorldMeeting;
  /** Groups that come together just now. */
  protected readonly opening = new Map<Communicator, string>();
  protected over: Error | undefined;
  readonly #groups = new Set<NativeGroup>();
  readonly #leave: () => Promise<void>;

  /** `leave` is called once, when the world's group is closed. */
  constructor(meeting: WorldMeeting, leave: () => Promise<void>) {
    this.meeting = meeting;
    this.#leave = leave;
  }

  abstract open(name: string, members: readonly number[]): Promise<Communicator>;

  opened(group: NativeGroup): void {
    this.#groups.add(group);
    if (this.over) group.fail(this.over);
  }

  async report(group: NativeGroup, error: Error, certain: boolean): Promise<void> {
    const tell = () => {
      const reason = error instanceof CollectiveError && error.reason !== "closed" ? error.reason : "transport";
      this.meeting.abort(group.name, reason, error.message);
    };
    if (certain) tell();
    await this.rootCause(() => group.failure);
    if (certain || group.failure) return;
    // Nobody is lost: then the connection alone broke, and the others hear it from here.
    error.message += "; both ranks still answer the rendezvous, so see to the network between their machines";
    tell();
    await this.rootCause(() => group.failure); // both ends of it may tell, and what came first is everybody's error
  }

  async closed(group: NativeGroup): Promise<void> {
    this.#groups.delete(group);
    if (group.name !== "world") return;
    for (const inner of [...this.#groups]) {
      inner.fail(new CollectiveError("closed", "the world that this group belongs to was closed"));
      await inner.close();
    }
    await this.#leave();
  }

  /** The rendezvous has decided. */
  judge(verdict: Verdict): void {
    const error = errorOf(verdict);
    const inner = verdict.kind === "abort" && verdict.group !== "world" ? verdict.group : undefined;
    if (inner === undefined) this.over ??= error;
    for (const group of this.#groups) if (inner === undefined || group.name === inner) group.fail(error);
    for (const [native, name] of this.opening) if (inner === undefined || name === inner) native.abort(error.message);
  }

  /** The ranks tell each other what `native` has for each of them, and connect. `contacts[i]` is for member i. */
  protected async connect<T extends Contact>(
    native: Communicator,
    name: string,
    members: readonly number[],
    contacts: readonly T[],
    check: (peers: readonly T[]) => void = () => {},
  ): Promise<Communicator> {
    this.opening.set(native, name);
    try {
      const peers = (await this.meeting.trade(`${name}/addresses`, members, contacts)) as T[];
      check(peers);
      await native.connect(peers.map(({ blob }) => Buffer.from(blob, "base64")));
      await this.joined(name, members);
      return native;
    } catch (error) {
      await native.close();
      const reason = (error as Partial<NativeFailure>).reason;
      if (reason === "transport" || reason === "aborted") await this.rootCause(() => this.over);
      throw this.over ?? error;
    } finally {
      this.opening.delete(native);
    }
  }

  /** What goes wrong from here on is the group's error, on every rank, and no longer one of coming together. */
  protected async joined(name: string, members: readonly number[]): Promise<void> {
    if (name === "world") await this.meeting.beating(); // else who is stopped now would be missed by nobody
    await this.meeting.gather(`${name}/joined`, members, null);
  }

  /** Waits a little for what the rendezvous says. */
  protected async rootCause<T>(known: () => T | undefined): Promise<T | undefined> {
    for (let waited = 0; waited < verdictPatience && known() === undefined; waited += 5) await sleep(5);
    return known();
  }
}

function errorOf(verdict: Verdict): Error {
  switch (verdict.kind) {
    case "lost":
      return new RankLostError(verdict.rank, verdict.message);
    case "missing":
      return new RendezvousError(verdict.message, verdict.ranks);
    case "refused":
      return new RendezvousError(verdict.message);
    case "abort":
      return new CollectiveError(verdict.reason, verdict.message);
  }
}
