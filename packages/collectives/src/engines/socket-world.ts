import { isIP } from "node:net";
import { hostname } from "node:os";
import { type Communicator, collectives, type NativeLink } from "@terse/native-collectives";
import { isLoopbackAddress } from "../address.ts";
import { RendezvousError } from "../errors.ts";
import { type Link, openLink } from "../link.ts";
import { isText } from "../rendezvous/check-value.ts";
import { textOfPeer } from "../text-of-peer.ts";
import type { WorldOptions } from "./engine.ts";
import { RendezvousWorld } from "./rendezvous-world.ts";

interface Place {
  address: string;
  host: string;
}

/**
 * One rank's world over TCP, by the project's own transport or by Gloo's. Ranks exchange addresses by the rendezvous.
 */
export class SocketWorld extends RendezvousWorld {
  readonly engine: "tcp" | "gloo";
  readonly emulatedLink: Link | undefined;
  readonly #options: WorldOptions;
  readonly #address: string;
  readonly #link: NativeLink | undefined;

  /** `address`: the numeric address of this machine that the other ranks can reach. */
  constructor(engine: "tcp" | "gloo", options: WorldOptions, address: string) {
    super(options);
    this.engine = engine;
    this.emulatedLink = options.emulateLink;
    this.#options = options;
    this.#address = address;
    this.#link = options.emulateLink && openLink(options.emulateLink);
  }

  async open(name: string, members: readonly number[]): Promise<Communicator> {
    if (this.failure) throw this.failure;
    const { timeoutSeconds, deadlineSeconds, rendezvous } = this.#options;
    if (members.length === 1) return collectives().loopback(1, timeoutSeconds, [], [])[0]!;
    // Gloo takes any connection for the rank that it waits for, so its ports open only when all ranks are there.
    if (this.engine === "gloo" && name === "world") await rendezvous.allGather(`${name}/here`, members, null);
    const place = members.indexOf(rendezvous.rank);
    const opened = collectives()[this.engine](
      place,
      members.length,
      this.#address,
      timeoutSeconds,
      deadlineSeconds,
      this.#link,
      rendezvous.outageSeconds,
    );
    const here: Place = { address: this.#address, host: hostname() };
    const shape = { address: (value: unknown) => isText(value) && isIP(value.split("%")[0]!) > 0, host: isText };
    return this.connect(opened, name, members, here, shape, (peers) => checkPlaces(peers, place, members));
  }
}

function checkPlaces(peers: readonly Place[], place: number, members: readonly number[]): void {
  const mine = peers[place]!;
  peers.forEach((peer, at) => {
    const unreachable = isLoopbackAddress(peer.address) && peer.host !== mine.host;
    const otherFamily = peer.address.includes(":") !== mine.address.includes(":");
    if (!unreachable && !otherFamily) return;
    throw new RendezvousError(
      `rank ${members[at]} on ${textOfPeer(peer.host)} offers the address ${peer.address}, which rank ${members[place]} on ${mine.host} (${mine.address}) cannot reach; give rank ${members[at]} another one in TERSE_ADDRESS, an address or an interface of its machine that the others reach`,
    );
  });
}
