import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Communicator, collectives, type NativeFailure, type NativeLink } from "@terse/native-collectives";
import { isLoopbackAddress } from "../address.ts";
import { CollectiveError, RankLostError, RendezvousError } from "../errors.ts";
import { type Link, openLink } from "../link.ts";
import type { NativeGroup, World } from "../native-group.ts";
import type { RendezvousClient } from "../rendezvous/client.ts";
import type { Verdict } from "../rendezvous/protocol.ts";

export interface GlooOptions {
  /** Numeric address of this machine that the other ranks reach. */
  address: string;
  /** An operation that has not finished after so long fails. */
  timeoutSeconds: number;
  /** Ranks must be connected after so long. */
  deadlineSeconds: number;
  /** This rank's link, where one is emulated. */
  emulateLink: Link | undefined;
}

/** What a rank tells another one when they are about to connect. */
interface Contact {
  blob: string; // Gloo's address, base64
  address: string;
  host: string;
}

const verdictPatience = 1000; // ms that a broken connection waits for the news of who is to blame

/** One rank's world over Gloo. The rendezvous carries addresses, and tells why a group is over. */
export class GlooWorld implements World {
  readonly engine = "gloo";
  readonly emulatedLink: Link | undefined;
  readonly meeting: RendezvousClient;
  readonly #options: GlooOptions;
  readonly #groups = new Set<NativeGroup>();
  readonly #link: NativeLink | undefined;
  readonly #opening = new Map<Communicator, string>();
  readonly #leave: () => Promise<void>;
  #over: Error | undefined;

  /** `leave` is called once, when the world's group is closed. */
  constructor(meeting: RendezvousClient, options: GlooOptions, leave: () => Promise<void>) {
    this.meeting = meeting;
    this.#options = options;
    this.emulatedLink = options.emulateLink;
    this.#link = options.emulateLink && openLink(options.emulateLink);
    this.#leave = leave;
  }

  async open(name: string, members: readonly number[]): Promise<Communicator> {
    if (this.#over) throw this.#over;
    const { address, timeoutSeconds, deadlineSeconds } = this.#options;
    if (members.length === 1) return collectives().loopback(1, timeoutSeconds, [], [])[0]!;
    // Gloo takes whoever comes first for the rank that it listens for: its ports open only when all are here to take them.
    if (name === "world") await this.meeting.gather(`${name}/here`, members, null);
    const place = members.indexOf(this.meeting.rank);
    const [native, blobs] = collectives().gloo(
      place,
      members.length,
      address,
      timeoutSeconds,
      deadlineSeconds,
      this.#link,
      this.meeting.silenceSeconds,
    );
    this.#opening.set(native, name);
    try {
      const contacts = blobs.map((blob): Contact => {
        return { blob: Buffer.from(blob).toString("base64"), address, host: hostname() };
      });
      const peers = (await this.meeting.trade(`${name}/addresses`, members, contacts)) as Contact[];
      checkContacts(peers, place, members);
      await native.connect(peers.map(({ blob }) => Buffer.from(blob, "base64")));
      // What goes wrong from here on is the group's error, on every rank, and no longer one of coming together.
      await this.meeting.gather(`${name}/joined`, members, null);
      return native;
    } catch (error) {
      await native.close();
      const reason = (error as Partial<NativeFailure>).reason;
      if (reason === "transport" || reason === "aborted") await this.#rootCause(() => this.#over);
      throw this.#over ?? error;
    } finally {
      this.#opening.delete(native);
    }
  }

  opened(group: NativeGroup): void {
    this.#groups.add(group);
    if (this.#over) group.fail(this.#over);
  }

  async report(group: NativeGroup, error: Error, certain: boolean): Promise<void> {
    const tell = () => {
      const reason = error instanceof CollectiveError && error.reason !== "closed" ? error.reason : "transport";
      this.meeting.abort(group.name, reason, error.message);
    };
    if (certain) tell();
    await this.#rootCause(() => group.failure);
    if (certain || group.failure) return;
    // Nobody is lost: then the connection alone broke, and the others hear it from here.
    error.message += "; both ranks still answer the rendezvous, so see to the network between their machines";
    tell();
    await this.#rootCause(() => group.failure); // both ends of it may tell, and what came first is everybody's error
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
    if (inner === undefined) this.#over ??= error;
    for (const group of this.#groups) if (inner === undefined || group.name === inner) group.fail(error);
    for (const [native, name] of this.#opening) if (inner === undefined || name === inner) native.abort(error.message);
  }

  async #rootCause<T>(known: () => T | undefined): Promise<T | undefined> {
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

function checkContacts(peers: readonly Contact[], place: number, members: readonly number[]): void {
  const mine = peers[place]!;
  peers.forEach((peer, at) => {
    const unreachable = isLoopbackAddress(peer.address) && peer.host !== mine.host;
    const otherFamily = peer.address.includes(":") !== mine.address.includes(":");
    if (!unreachable && !otherFamily) return;
    throw new RendezvousError(
      `rank ${members[at]} on ${peer.host} offers the address ${peer.address}, which rank ${members[place]} on ${mine.host} (${mine.address}) cannot reach; give it TERSE_ADDRESS, an address or an interface of its machine that the others see`,
    );
  });
}
