/**
 * NCCL: collectives between GPUs, on a stream of the rank's own device.
 *
 * Memory is on the device, `cuda:K`, or on the CPU. CPU memory is copied to the device and back, which is meant for a
 * few numbers. Differences from the other engines, all of which come from NCCL:
 *
 * - Messages have no headers. Ranks that call different operations, or give different sizes or roots, get no error that
 *   says so: they fail at the deadline (`timeoutSeconds`), or get wrong numbers.
 * - `send` and `recv` run in order with the collectives. Those that are called without an await between them start
 *   together, so two ranks that send to each other must call both send and receive before they await either.
 * - All groups of a rank start their operations in the order of the calls, which must be the same on every rank. A
 *   split is such an operation: later ones wait for it.
 * - `mean` multiplies by 1/n before it adds. NCCL decides what `min` and `max` make of a NaN. 16-bit integers can be
 *   moved, but not reduced. Results are the same on all ranks, bit for bit, as on every engine.
 */
import { hostname } from "node:os";
import {
  type Communicator,
  collectives,
  type NativeFailure,
  type NcclDevice,
  type NcclStatus,
} from "@terse/native-collectives";
import { RendezvousError } from "../errors.ts";
import { checkValues, isBlob, isText, optional } from "../rendezvous/check-value.ts";
import { textOfPeer } from "../text-of-peer.ts";
import type { Engine, WorldOptions } from "./engine.ts";
import type { NcclOptions } from "./nccl-options.ts";
import { RendezvousWorld } from "./rendezvous-world.ts";

/** GPU memory by NCCL. */
export const nccl: Engine = {
  emulatesLinks: false,
  opensAlone: true,
  // The library and the GPU are looked for in `world`, so that the other ranks get the error too
  missing: () => undefined,
  world: async (options) => new NcclWorld(options),
};

/** What the ranks exchange before they connect. */
const idBytes = 128; // of ncclUniqueId

interface RankInfo {
  version: string;
  host: string;
  id?: string; // the group's unique id, base64, from its first member
  error?: string; // why that member has none
}

/** Whether NCCL and a GPU are available in this process, and if not, why. */
export function findNccl({ library, driver }: Pick<NcclOptions, "library" | "driver"> = {}): NcclStatus {
  return collectives().ncclStatus(library, driver);
}

/** One rank's world over NCCL. The ranks exchange unique ids by the rendezvous. */
export class NcclWorld extends RendezvousWorld {
  readonly engine = "nccl";
  readonly emulatedLink = undefined;
  readonly device: string;
  readonly version: string;
  readonly handle: NcclDevice;
  readonly #options: NcclOptions;
  readonly #limits: readonly [timeoutSeconds: number, deadlineSeconds: number];
  readonly #absent: readonly string[];

  /** Throws RendezvousError where NCCL, the driver or the GPU is missing. */
  constructor({ nccl = {}, localRank, timeoutSeconds, deadlineSeconds, ...world }: WorldOptions) {
    super(world);
    this.#options = nccl;
    this.#limits = [timeoutSeconds, deadlineSeconds];
    const status = findNccl(nccl);
    if (!status.available) throw new RendezvousError(`the engine nccl is not available here: ${status.reason}`);
    const { device = chooseDevice(localRank, status.devices), library, driver } = nccl;
    try {
      this.handle = collectives().ncclDevice(device, library, driver);
    } catch (error) {
      throw new RendezvousError(`rank ${world.rendezvous.rank} has no GPU for NCCL: ${(error as Error).message}`, [], {
        cause: error,
      });
    }
    this.device = `cuda:${device}`;
    this.version = status.version!;
    this.#absent = status.absent!;
    warnAboutBlocking();
  }

  /** Splits by `ncclCommSplit`, which needs no unique id. Undefined where the library is too old to have it. */
  split(parent: Communicator) {
    if (this.#absent.includes("ncclCommSplit")) return undefined;
    const [place, split] = parent.split();
    split.catch(() => {}); // the ranks may fail to exchange their colors before anything awaits it
    return async (name: string, members: readonly number[], color: number): Promise<Communicator | undefined> => {
      const { config = {} } = this.#options;
      const [rank, size] = [members.indexOf(this.rendezvous.rank), members.length];
      const native = collectives().ncclSplit(place, color, rank, rank, size, config, ...this.#limits);
      if (native) return this.#join(native, name, members, split);
      await split.catch(async (error) => Promise.reject(await this.#cause(error)));
      return undefined;
    };
  }

  async open(name: string, members: readonly number[]): Promise<Communicator> {
    if (this.failure) throw this.failure;
    const place = members.indexOf(this.rendezvous.rank);
    const mine: RankInfo = { version: this.version, host: hostname() };
    if (place === 0) Object.assign(mine, this.#uniqueId());
    // The versions are compared first, because NCCL itself would not name the ranks that differ.
    const found = await this.rendezvous.allGather(`${name}/nccl`, members, mine);
    const ranks = checkValues<RankInfo>(found, members, "its NCCL", (at) => ({
      version: isText,
      host: isText,
      error: optional(isText),
      // Without an error the first member has the id.
      id: (id) => at > 0 || isBlob(idBytes)(id) || (found[0] as RankInfo).error !== undefined,
    }));
    checkVersions(ranks, members);
    if (ranks[0]!.error) throw new RendezvousError(`rank ${members[0]}: ${textOfPeer(ranks[0]!.error)}`);
    const { config = {} } = this.#options;
    const id = Buffer.from(ranks[0]!.id!, "base64");
    const native = collectives().nccl(this.handle, place, members.length, id, config, ...this.#limits);
    return this.#join(native, name, members, native.connect([]));
  }

  /** Resolves when all members are connected. If one cannot connect, it rejects on all. */
  async #join(
    native: Communicator,
    name: string,
    members: readonly number[],
    connected: Promise<void>,
  ): Promise<Communicator> {
    this.opening.set(native, name);
    try {
      await connected;
      await this.joined(name, members);
      return native;
    } catch (error) {
      native.abort("not all ranks could connect");
      await native.close();
      throw await this.#cause(error as Error);
    } finally {
      this.opening.delete(native);
    }
  }

  async #cause(error: Error & Partial<NativeFailure>): Promise<Error> {
    const { reason, message } = error;
    if (reason === "transport" || reason === "aborted") await this.rootCause(() => this.failure);
    return this.failure ?? (reason === undefined ? error : new RendezvousError(message, [], { cause: error }));
  }

  #uniqueId(): Pick<RankInfo, "id" | "error"> {
    try {
      return { id: Buffer.from(collectives().ncclUniqueId(this.#options.library)).toString("base64") };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
}

/** Some launchers let each rank see all GPUs of its machine, and some only its own. */
export const chooseDevice = (localRank: number, devices: number): number => (devices === 1 ? 0 : localRank);

function checkVersions(ranks: readonly RankInfo[], members: readonly number[]): void {
  const versions = Map.groupBy(ranks.keys(), (at) => ranks[at]!.version);
  if (versions.size === 1) return;
  const named = [...versions].map(([version, places]) => {
    const where = [...places].map((at) => `${members[at]} on ${ranks[at]!.host}`);
    return textOfPeer(`${version} on rank ${where.join(", ")}`);
  });
  throw new RendezvousError(
    `the ranks have different versions of NCCL: ${named.join("; ")}; install the same one everywhere, or name its file in TERSE_NCCL`,
  );
}

let warned = false;

/** The variable overrides this engine's setting. Then a call that hangs can be neither timed out nor aborted. */
function warnAboutBlocking(): void {
  const value = process.env["NCCL_COMM_BLOCKING"];
  if (warned || value === undefined || value === "0") return;
  warned = true;
  process.emitWarning(
    `NCCL_COMM_BLOCKING=${value} makes NCCL's calls block, so that deadlines and aborts wait for them; unset it, or set it to 0`,
  );
}
