import { type Communicator, collectives, type NativeLink } from "@terse/native-collectives";
import { type Link, openLink } from "../link.ts";
import { RendezvousWorld, type WorldMeeting } from "./rendezvous-world.ts";

export interface MpiOptions {
  /** An operation that has not finished after so long fails. */
  timeoutSeconds: number;
  /** This rank's link, where one is emulated. */
  emulateLink: Link | undefined;
}

/** One rank's world over MPI, which must have been started. The rendezvous carries tags, and tells why a group is over. */
export class MpiWorld extends RendezvousWorld {
  readonly engine = "mpi";
  readonly emulatedLink: Link | undefined;
  readonly #timeoutSeconds: number;
  readonly #link: NativeLink | undefined;

  /** `leave` is called once, when the world's group is closed. */
  constructor(meeting: WorldMeeting, { timeoutSeconds, emulateLink }: MpiOptions, leave: () => Promise<void>) {
    super(meeting, leave);
    this.emulatedLink = emulateLink;
    this.#timeoutSeconds = timeoutSeconds;
    this.#link = emulateLink && openLink(emulateLink);
  }

  async open(name: string, members: readonly number[]): Promise<Communicator> {
    if (this.over) throw this.over;
    if (members.length === 1) return collectives().loopback(1, this.#timeoutSeconds, [], [])[0]!;
    const place = members.indexOf(this.meeting.rank);
    const [native, blobs] = collectives().mpi(place, members.length, this.#timeoutSeconds, this.#link);
    const contacts = blobs.map((blob) => ({ blob: Buffer.from(blob).toString("base64") }));
    return this.connect(native, name, members, contacts);
  }
}
