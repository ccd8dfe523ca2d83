import { type Communicator, collectives, type NativeLink } from "@terse/native-collectives";
import { RendezvousError } from "../errors.ts";
import { type Link, openLink } from "../link.ts";
import type { Engine, WorldOptions } from "./engine.ts";
import { RendezvousWorld } from "./rendezvous-world.ts";

/** CPU memory by the messages of an MPI library. */
export const mpi: Engine = {
  emulatesLinks: true,
  opensAlone: false,
  missing: () =>
    collectives().hasMpi
      ? undefined
      : "this build has no MPI: put its compiler wrapper (mpicc) on the PATH, or name its prefix in TERSE_MPI, and build again with `./terse setup`",
  async startJob(deadlineSeconds) {
    try {
      return await collectives().startMpi(deadlineSeconds);
    } catch (error) {
      throw new RendezvousError((error as Error).message, [], { cause: error });
    }
  },
  world: async (options) => new MpiWorld(options),
};

/** One rank's world over MPI, which must have been started. The ranks exchange tags by the rendezvous. */
class MpiWorld extends RendezvousWorld {
  readonly engine = "mpi";
  readonly emulatedLink: Link | undefined;
  readonly #timeoutSeconds: number;
  readonly #link: NativeLink | undefined;

  constructor(options: WorldOptions) {
    super(options);
    this.emulatedLink = options.emulateLink;
    this.#timeoutSeconds = options.timeoutSeconds;
    this.#link = options.emulateLink && openLink(options.emulateLink);
  }

  async open(name: string, members: readonly number[]): Promise<Communicator> {
    if (this.failure) throw this.failure;
    if (members.length === 1) return collectives().loopback(1, this.#timeoutSeconds, [], [])[0]!;
    const place = members.indexOf(this.rendezvous.rank);
    const opened = collectives().mpi(place, members.length, this.#timeoutSeconds, this.#link);
    return this.connect(opened, name, members, {});
  }
}
