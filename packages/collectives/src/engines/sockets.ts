import { hostname } from "node:os";
import { type Communicator, collectives, type NativeLink } from "@terse/native-collectives";
import { isLoopbackAddress } from "../address.ts";
import { RendezvousError } from "../errors.ts";
import { type Link, openLink } from "../link.ts";
import { type Contact, RendezvousWorld, type WorldMeeting } from "./rendezvous-world.ts";

export interface SocketOptions {
  /** Our own transport, or Gloo's. */
  engine: "tcp" | "gloo";
  /** Numeric address of this machine that the other ranks reach. */
  address: string;
  /** An operation that has not finished after so long fails. */
  timeoutSeconds: number;
  /** Ranks must be connected after so long. */
  deadlineSeconds: number;
  /** This rank's link, where one is emulated. */
  emulateLink: Link | undefined;
}

interface SocketContact extends Contact {
  address: string;
  host: string;
}

/** One rank's world over TCP. The rendezvous carries addresses, and tells why a group is over. */
export class SocketWorld extends RendezvousWorld {
  readonly engine: "tcp" | "gloo";
  readonly emulatedLink: Link | undefined;
  readonly #options: SocketOptions;
  readonly #link: NativeLink | undefined;

  /** `leave` is called once, when the world's group is closed. */
  constructor(meeting: WorldMeeting, options: SocketOptions, leave: () => Promise<void>) {
    super(meeting, leave);
    this.engine = options.engine;
    this.emulatedLink = options.emulateLink;
    this.#options = options;
    this.#link = options.emulateLink && openLink(options.emulateLink);
  }

  async open(name: string, members: readonly number[]): Promise<Communicator> {
    if (this.over) throw this.over;
    const { address, timeoutSeconds, deadlineSeconds } = this.#options;
    if (members.length === 1) return collectives().loopback(1, timeoutSeconds, [], [])[0]!;
    // Gloo takes whoever comes first for the rank that it listens for: its ports open only when all are here to take them.
    if (this.engine === "gloo" && name === "world") await this.meeting.gather(`${name}/here`, members, null);
    const place = members.indexOf(this.meeting.rank);
    const [native, blobs] = collectives()[this.engine](
      place,
      members.length,
      address,
      timeoutSeconds,
      deadlineSeconds,
      this.#link,
      this.meeting.silenceSeconds,
    );
    const contacts = blobs.map((blob): SocketContact => {
      return { blob: Buffer.from(blob).toString("base64"), address, host: hostname() };
    });
    return this.connect(native, name, members, contacts, (peers) => checkContacts(peers, place, members));
  }
}

function checkContacts(peers: readonly SocketContact[], place: number, members: readonly number[]): void {
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
