import { hostname } from "node:os";
import { type Communicator, collectives, type NativeFailure, type NativeLink } from "@terse/native-collectives";
import { isLoopbackAddress } from "../address.ts";
import { RendezvousError } from "../errors.ts";
import { type Link, openLink } from "../link.ts";
import { RendezvousWorld, type WorldMeeting } from "./rendezvous-world.ts";

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

/** One rank's world over Gloo. The rendezvous carries addresses, and tells why a group is over. */
export class GlooWorld extends RendezvousWorld {
  readonly engine = "gloo";
  readonly emulatedLink: Link | undefined;
  readonly #options: GlooOptions;
  readonly #link: NativeLink | undefined;

  constructor(meeting: WorldMeeting, options: GlooOptions, leave: () => Promise<void>) {
    super(meeting, leave);
    this.#options = options;
    this.emulatedLink = options.emulateLink;
    this.#link = options.emulateLink && openLink(options.emulateLink);
  }

  async open(name: string, members: readonly number[]): Promise<Communicator> {
    if (this.over) throw this.over;
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
    this.opening.set(native, name);
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
      if (reason === "transport" || reason === "aborted") await this.rootCause(() => this.over);
      throw this.over ?? error;
    } finally {
      this.opening.delete(native);
    }
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
