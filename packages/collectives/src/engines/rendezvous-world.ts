import { setTimeout as sleep } from "node:timers/promises";
import type { Communicator, NativeFailure } from "@terse/native-collectives";
import { CollectiveError, RankLostError, RendezvousError } from "../errors.ts";
import type { Link } from "../link.ts";
import { checkValues, isBlob, type Shape } from "../rendezvous/check-value.ts";
import { type GroupFailure, innerGroupOf } from "../rendezvous/protocol.ts";
import type { WorldRendezvous } from "../rendezvous/rendezvous.ts";
import type { World, WorldGroup } from "../world.ts";

/** What ties a rank to its world. */
export interface Membership {
  readonly rendezvous: WorldRendezvous;
  /** Called once, when the world's group is closed. */
  readonly leave: () => Promise<void>;
}

const rootCauseMilliseconds = 1000; // how long a broken connection waits for the server to name the rank that failed

/**
 * One rank's world: its groups, and the failures that the rendezvous server reports. Each engine defines how a group is
 * opened.
 */
export abstract class RendezvousWorld implements World {
  abstract readonly engine: string;
  abstract readonly emulatedLink: Link | undefined;
  readonly rendezvous: WorldRendezvous;
  /** Groups that are being opened. */
  protected readonly opening = new Map<Communicator, string>();
  /** Why the whole world has failed. */
  protected failure: Error | undefined;
  readonly #groups = new Set<WorldGroup>();
  readonly #leave: () => Promise<void>;

  constructor({ rendezvous, leave }: Membership) {
    this.rendezvous = rendezvous;
    this.#leave = leave;
  }

  abstract open(name: string, members: readonly number[]): Promise<Communicator>;

  opened(group: WorldGroup): void {
    this.#groups.add(group);
    if (this.failure) group.fail(this.failure);
  }

  async report(group: WorldGroup, error: Error, certain: boolean): Promise<void> {
    const abort = () => {
      const reason = error instanceof CollectiveError && error.reason !== "closed" ? error.reason : "transport";
      this.rendezvous.abort(group.name, reason, error.message);
    };
    if (certain) abort();
    await this.rootCause(() => group.failure);
    if (certain || group.failure) return;
    // No rank is lost, so only the connection broke. This rank reports it to the others.
    error.message += "; both ranks still answer the rendezvous, so check the network between their machines";
    abort();
    await this.rootCause(() => group.failure); // both ends may report it; the first report is the error on every rank
  }

  async closed(group: WorldGroup): Promise<void> {
    this.#groups.delete(group);
    if (group.name !== "world") return;
    for (const inner of [...this.#groups]) {
      inner.fail(new CollectiveError("closed", "the world that this group belongs to was closed"));
      await inner.close();
    }
    await this.#leave();
  }

  /** The rendezvous server reports that a group, or the whole world, has failed. */
  fail(failure: GroupFailure): void {
    const error = errorOf(failure);
    const inner = innerGroupOf(failure);
    if (inner === undefined) this.failure ??= error;
    for (const group of this.#groups) if (inner === undefined || group.name === inner) group.fail(error);
    for (const [native, name] of this.opening) if (inner === undefined || name === inner) native.abort(error.message);
  }

  /**
   * The ranks exchange the addresses of `native`, of which addresses[i] is for member i, and connect. `about`: what
   * this rank also tells them of itself.
   */
  protected async connect<T extends object>(
    [native, addresses]: [Communicator, Uint8Array[]],
    name: string,
    members: readonly number[],
    about: T,
    shape: Shape = {},
    check: (peers: readonly T[]) => void = () => {},
  ): Promise<Communicator> {
    this.opening.set(native, name);
    try {
      const contacts = addresses.map((each) => ({ blob: Buffer.from(each).toString("base64"), ...about }));
      const found = await this.rendezvous.allToAll(`${name}/addresses`, members, contacts);
      const here = members.indexOf(this.rendezvous.rank);
      // An engine's addresses have one length, but for a rank's own, which is empty.
      const bytes = addresses.find((_, place) => place !== here)!.length;
      const peers = checkValues<T & { blob: string }>(found, members, "its address", (place) => ({
        ...shape,
        blob: isBlob(place === here ? undefined : bytes),
      }));
      check(peers);
      await native.connect(peers.map(({ blob }) => Buffer.from(blob, "base64")));
      await this.joined(name, members);
      return native;
    } catch (error) {
      await native.close();
      const reason = (error as Partial<NativeFailure>).reason;
      if (reason === "transport" || reason === "aborted") await this.rootCause(() => this.failure);
      throw this.failure ?? error;
    } finally {
      this.opening.delete(native);
    }
  }

  /** Resolves when all members are connected. A failure from then on is an error of the group, on every rank. */
  protected async joined(name: string, members: readonly number[]): Promise<void> {
    if (name === "world") await this.rendezvous.heartbeatHeard(); // else no rank would notice that this one stops
    await this.rendezvous.allGather(`${name}/joined`, members, null);
  }

  /** Waits a little for what the rendezvous server reports. */
  protected async rootCause<T>(known: () => T | undefined): Promise<T | undefined> {
    for (let waited = 0; waited < rootCauseMilliseconds && known() === undefined; waited += 5) await sleep(5);
    return known();
  }
}

function errorOf(failure: GroupFailure): Error {
  switch (failure.kind) {
    case "lost":
      return new RankLostError(failure.rank, failure.message);
    case "missing":
      return new RendezvousError(failure.message, failure.ranks);
    case "refused":
      return new RendezvousError(failure.message);
    case "abort":
      return new CollectiveError(failure.reason, failure.message);
  }
}
