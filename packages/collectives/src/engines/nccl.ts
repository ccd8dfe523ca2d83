/**
 * NCCL: collectives between GPUs, on a stream of the rank's own device.
 *
 * Memory is on the device, `cuda:K`, or on the CPU, from where it takes the way over the device (so that a few numbers need no
 * thought; for many, put them there). What differs from the other engines, because NCCL has it so:
 *
 * - There are no headers: ranks that call different things, or with different sizes or roots, are not told so; they end at the
 *   deadline (`timeoutSeconds`), or get wrong numbers.
 * - `send` and `recv` have their place among the collectives, in the order of the calls, and those that are called in one turn of
 *   the event loop begin together. So what two ranks send each other must be called in one turn on each.
 * - All groups of a rank begin their operations in the order of the calls, which must be the same on every rank; a split is one of
 *   them, and what is called after it waits for it.
 * - `mean` multiplies by 1/n before it adds, and what `min` and `max` make of a NaN is NCCL's. Integers of 16 bits are moved, and
 *   not added. Results are the same on all ranks, bit for bit, as everywhere.
 */
import { hostname } from "node:os";
import {
  type Communicator,
  collectives,
  type DType,
  type NativeBuffer,
  type NativeFailure,
  type NcclDevice,
  type NcclStatus,
  type TypedArray,
} from "@terse/native-collectives";
import { RendezvousError } from "../errors.ts";
import type { Group } from "../group.ts";
import { NativeGroup } from "../native-group.ts";
import { RendezvousWorld, type WorldMeeting } from "./rendezvous-world.ts";

export interface NcclOptions {
  /** This rank's GPU, as CUDA_VISIBLE_DEVICES numbers them. Default: LOCAL_RANK, or the only one that the process sees. */
  device?: number;
  /**
   * The file of the library. Default: TERSE_NCCL, else one that this process has open already, else `libnccl.so.2` of the system, else
   * that of pip beside libtorch.
   */
  library?: string;
  /** The file of the NVIDIA driver. Default: TERSE_CUDA_DRIVER, else `libcuda.so.1`. */
  driver?: string;
  /**
   * Fields of NCCL's `ncclConfig_t` by their names there: `{ maxCTAs: 8, netName: "Socket" }`. A field that the library is too old for
   * is refused; `blocking` is not among them.
   */
  config?: Readonly<Record<string, number | string>>;
}

export interface NcclWorldOptions extends NcclOptions {
  localRank: number;
  timeoutSeconds: number;
  deadlineSeconds: number;
}

/** What the ranks compare before they connect. */
interface Introduction {
  version: string;
  host: string;
  id?: string; // of the group's first member: base64
  refusal?: string; // why this rank cannot
}

/** Whether NCCL and a GPU are here, and if not, why. */
export function findNccl({ library, driver }: Pick<NcclOptions, "library" | "driver"> = {}): NcclStatus {
  return collectives().ncclStatus(library, driver);
}

/** One rank's world over NCCL. The rendezvous carries the unique ids, and tells why a group is over. */
export class NcclWorld extends RendezvousWorld {
  readonly engine = "nccl";
  readonly emulatedLink = undefined;
  readonly device: string;
  readonly version: string;
  readonly handle: NcclDevice;
  readonly #options: NcclWorldOptions;
  readonly #absent: readonly string[];

  /** Throws RendezvousError where NCCL, the driver or the GPU is missing. */
  constructor(meeting: WorldMeeting, options: NcclWorldOptions, leave: () => Promise<void>) {
    super(meeting, leave);
    this.#options = options;
    const status = findNccl(options);
    if (!status.available) throw new RendezvousError(`the engine nccl is not available here: ${status.reason}`);
    const { device = chooseDevice(options.localRank, status.devices), library, driver } = options;
    try {
      this.handle = collectives().ncclDevice(device, library, driver);
    } catch (error) {
      throw new RendezvousError(`rank ${meeting.rank} has no GPU for NCCL: ${(error as Error).message}`, [], {
        cause: error,
      });
    }
    this.device = `cuda:${device}`;
    this.version = status.version!;
    this.#absent = status.absent!;
    warnAboutBlocking();
  }

  /** By `ncclCommSplit`, which needs no unique id and no rank that the others look for; the library may be too old for it. */
  split(parent: Communicator) {
    if (this.#absent.includes("ncclCommSplit")) return undefined;
    const [place, split] = parent.split();
    split.catch(() => {}); // the ranks may fail to meet before anybody waits for it
    return async (name: string, members: readonly number[], color: number): Promise<Communicator | undefined> => {
      const { timeoutSeconds, deadlineSeconds, config = {} } = this.#options;
      const [rank, size] = [members.indexOf(this.meeting.rank), members.length];
      const limits = [timeoutSeconds, deadlineSeconds] as const;
      const native = collectives().ncclSplit(place, color, rank, rank, size, config, ...limits);
      if (native) return this.#join(native, name, members, split);
      await split.catch(async (error) => Promise.reject(await this.#cause(error)));
      return undefined;
    };
  }

  async open(name: string, members: readonly number[]): Promise<Communicator> {
    if (this.over) throw this.over;
    const place = members.indexOf(this.meeting.rank);
    const mine: Introduction = { version: this.version, host: hostname() };
    if (place === 0) Object.assign(mine, this.#uniqueId());
    // Versions first: NCCL itself would only say that some rank has another one.
    const ranks = (await this.meeting.gather(`${name}/nccl`, members, mine)) as Introduction[];
    checkVersions(ranks, members);
    if (ranks[0]!.refusal) throw new RendezvousError(`rank ${members[0]}: ${ranks[0]!.refusal}`);
    const { timeoutSeconds, deadlineSeconds, config = {} } = this.#options;
    const id = Buffer.from(ranks[0]!.id!, "base64");
    const native = collectives().nccl(this.handle, place, members.length, id, config, timeoutSeconds, deadlineSeconds);
    return this.#join(native, name, members, native.connect([]));
  }

  /** `connected` on all members, and else on none. */
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
      native.abort("the group did not come together");
      await native.close();
      throw await this.#cause(error as Error);
    } finally {
      this.opening.delete(native);
    }
  }

  async #cause(error: Error & Partial<NativeFailure>): Promise<Error> {
    const { reason, message } = error;
    if (reason === "transport" || reason === "aborted") await this.rootCause(() => this.over);
    return this.over ?? (reason === undefined ? error : new RendezvousError(message, [], { cause: error }));
  }

  #uniqueId(): Pick<Introduction, "id" | "refusal"> {
    try {
      return { id: Buffer.from(collectives().ncclUniqueId(this.#options.library)).toString("base64") };
    } catch (error) {
      return { refusal: (error as Error).message };
    }
  }
}

/** Some launchers show each rank all GPUs of its machine, and some only its own. */
export const chooseDevice = (localRank: number, devices: number): number => (devices === 1 ? 0 : localRank);

function checkVersions(ranks: readonly Introduction[], members: readonly number[]): void {
  const versions = Map.groupBy(ranks.keys(), (at) => ranks[at]!.version);
  if (versions.size === 1) return;
  const named = [...versions].map(([version, places]) => {
    const where = [...places].map((at) => `${members[at]} on ${ranks[at]!.host}`);
    return `${version} on rank ${where.join(", ")}`;
  });
  throw new RendezvousError(
    `the ranks have different versions of NCCL: ${named.join("; ")}; give all the same one, TERSE_NCCL names its file`,
  );
}

let warned = false;

/** It overrides what this engine asks for, and then a hanging call can be neither timed out nor aborted. */
function warnAboutBlocking(): void {
  const value = process.env["NCCL_COMM_BLOCKING"];
  if (warned || value === undefined || value === "0") return;
  warned = true;
  process.emitWarning(
    `NCCL_COMM_BLOCKING=${value} makes calls of NCCL block: a deadline or an abort then waits for them; unset it, or set it to 0`,
  );
}

/** Memory on a rank's device, as NCCL wants it: of ncclMemAlloc, where the library has it. */
export class DeviceBuffer implements NativeBuffer, Disposable {
  readonly length: number;
  readonly dtype: DType;
  readonly device: string;
  readonly #group: NativeGroup;
  readonly #world: NcclWorld;
  #pointer: bigint;

  /** `group` is one of the engine nccl, and gives the device. Throws TypeError where it is not. */
  constructor(group: Group, length: number, dtype: DType) {
    if (!(group instanceof NativeGroup && group.world instanceof NcclWorld))
      throw new TypeError(
        `memory of a device belongs to a group of the engine nccl, and this is one of ${group.engine}`,
      );
    if (!(dtype in elementBytes)) throw new TypeError(`no dtype is called ${dtype}`);
    if (!Number.isSafeInteger(length) || length < 0)
      throw new RangeError(`the length of memory is a number from 0 on, and not ${length}`);
    this.length = length;
    this.dtype = dtype;
    this.#group = group;
    this.#world = group.world;
    this.device = group.world.device;
    this.#pointer = collectives().ncclAllocate(this.#world.handle, Math.max(1, length * elementBytes[dtype]));
  }

  get pointer(): bigint {
    if (this.#pointer === 0n) throw new Error("this memory of the device has been freed");
    return this.#pointer;
  }

  /** Copies `from` here. It has the same bytes, whatever its type. */
  async write(from: TypedArray): Promise<void> {
    await this.#group.local("copy", bytes(from), this.#asBytes(from));
  }

  /** Copies this to `to`. */
  async read(to: TypedArray): Promise<void> {
    await this.#group.local("copy", this.#asBytes(to), bytes(to));
  }

  /**
   * Makes it known to the network, once, so that collectives of this group read and write it there without a copy of their own. All
   * ranks do it, or none, and give memory that is registered from then on, at the same place in it. It lasts until the memory is
   * freed or the group is closed, whatever comes first; a group that is split from this one registers for itself, by
   * `register(inner)`. Rejects where the version of NCCL has no registration.
   */
  async register(group: Group = this.#group): Promise<void> {
    if (!(group instanceof NativeGroup && group.world === this.#world))
      throw new TypeError("memory of a device is registered in groups of the world that gave it");
    await group.local("enroll", this);
  }

  /** Gives it back, after every operation on it has ended; groups that have it registered forget it first. */
  free(): void {
    if (this.#pointer === 0n) return;
    collectives().ncclFree(this.#world.handle, this.#pointer);
    this.#pointer = 0n;
  }

  [Symbol.dispose](): void {
    this.free();
  }

  #asBytes(other: TypedArray): NativeBuffer {
    const length = this.length * elementBytes[this.dtype];
    if (other.byteLength !== length)
      throw new RangeError(`this memory has ${length} bytes, and the array ${other.byteLength}`);
    return { pointer: this.pointer, length, dtype: "u8", device: this.device };
  }
}

const elementBytes: Record<DType, number> = {
  u8: 1,
  i8: 1,
  i16: 2,
  i32: 4,
  i64: 8,
  f16: 2,
  bf16: 2,
  f32: 4,
  f64: 8,
  bool: 1,
};

const bytes = (x: TypedArray) => new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
