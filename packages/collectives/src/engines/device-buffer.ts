import { collectives, type DType, elementBytes, type NativeBuffer, type TypedArray } from "@terse/native-collectives";
import { show } from "@terse/options";
import type { Group } from "../group.ts";
import { NativeGroup } from "../native-group.ts";
import { NcclWorld } from "./nccl.ts";

/** Memory on a rank's device, allocated by ncclMemAlloc where the library has it. */
export class DeviceBuffer implements NativeBuffer, Disposable {
  readonly length: number;
  readonly dtype: DType;
  readonly device: string;
  readonly #group: NativeGroup;
  readonly #world: NcclWorld;
  #pointer: bigint;

  /** The buffer is on the device of `group`. Throws TypeError where that is not a group of the engine nccl. */
  constructor(group: Group, length: number, dtype: DType) {
    if (!(group instanceof NativeGroup && group.world instanceof NcclWorld))
      throw new TypeError(`a DeviceBuffer needs a group of the engine nccl, and this one is of ${group.engine}`);
    if (!(dtype in elementBytes))
      throw new TypeError(`no dtype is called ${dtype}; there are ${Object.keys(elementBytes).join(", ")}`);
    if (!Number.isSafeInteger(length) || length < 0)
      throw new RangeError(`the length of a DeviceBuffer must be a whole number from 0 on, and is ${show(length)}`);
    this.length = length;
    this.dtype = dtype;
    this.#group = group;
    this.#world = group.world;
    this.device = group.world.device;
    this.#pointer = collectives().ncclAllocate(group.world.handle, Math.max(1, length * elementBytes[dtype]));
  }

  get pointer(): bigint {
    if (this.#pointer === 0n) throw new Error("this DeviceBuffer has been freed; free it after its last use");
    return this.#pointer;
  }

  /** Copies `from` into the buffer. It must have as many bytes; its type may differ. */
  async write(from: TypedArray): Promise<void> {
    await this.#group.runLocally("copy", bytes(from), this.#asBytes(from));
  }

  /** Copies the buffer into `to`. */
  async read(to: TypedArray): Promise<void> {
    await this.#group.runLocally("copy", this.#asBytes(to), bytes(to));
  }

  /**
   * Registers the buffer with NCCL (ncclCommRegister), so that collectives of the group use it without a copy. Either
   * all ranks register, or none. From then on all ranks pass registered memory, at the same offset in it. A
   * registration lasts until the buffer is freed or the group is closed. A group that is split from this one needs
   * `register(inner)`. Rejects where the version of NCCL has no registration.
   */
  async register(group: Group = this.#group): Promise<void> {
    if (!(group instanceof NativeGroup && group.world === this.#world))
      throw new TypeError(
        "this DeviceBuffer belongs to another world than the group; register it in a group of its own world",
      );
    await group.runLocally("registerBuffer", this);
  }

  /** Frees the memory when every operation on it has ended. Registrations end first. */
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
      throw new RangeError(
        `this DeviceBuffer has ${length} bytes, and the array ${other.byteLength}; give one of as many`,
      );
    return { pointer: this.pointer, length, dtype: "u8", device: this.device };
  }
}

const bytes = (x: TypedArray) => new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
