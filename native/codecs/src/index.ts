import { type Addon, loadAddon, type PointerMemory } from "@terse/native-loader";

export { NativeMissingError, NotFiniteError, type PointerMemory } from "@terse/native-loader";

/** Floats to encode, or to add to: fp32, contiguous, on the CPU. */
export type Floats = Float32Array | PointerMemory;

/** Which way an exact zero, or a tied vote, goes. */
export type Sign = "plus" | "minus";

/** One implementation of one codec, as in `terse/codecs.h`. All implementations of a codec write the same bytes. */
export interface CodecKernel {
  readonly name: string; // "sign"
  readonly implementation: string; // "avx2", "scalar", "typescript"
  /** Bytes for n floats. */
  wireBytes(n: number): number;
  /** Fills `wire` (exactly wireBytes(n) bytes) and returns n; or returns the index of the first NaN or infinity, `wire` undefined. */
  encode(wire: Uint8Array, x: Floats, options: { zero: Sign; hold?: Uint8Array | undefined }): number;
  /** sum += scale · decode(wire) */
  decodeAdd(sum: Floats, wire: Uint8Array, options: { scale: number; hold?: Uint8Array | undefined }): void;
}

/** One way to count packed votes of n lanes. Every array holds exactly ceil(n/8) bytes. 1 to 1024 votes. */
export interface VoteKernel {
  readonly name: string; // "vote"
  readonly implementation: string;
  majority(out: Uint8Array, votes: readonly Uint8Array[], n: number, options: { tie: Sign }): void;
  majorityOrZero(plus: Uint8Array, nonzero: Uint8Array, votes: readonly Uint8Array[], n: number): void;
  tally(planes: readonly Uint8Array[], votes: readonly Uint8Array[], n: number): void;
}

interface CodecsAddon {
  abi: number;
  codecs(): CodecKernel[];
  votes(): VoteKernel[];
}

/** The TERSE_CODECS_ABI of the C library inside the addon. */
export const abi = (): number => open().abi;

/** Every codec implementation that this machine can run, best first within a codec. Throws NativeMissingError without the addon. */
export const codecs = (): readonly CodecKernel[] => open().codecs();

/** Every vote implementation that this machine can run, best first. Throws NativeMissingError without the addon. */
export const votes = (): readonly VoteKernel[] => open().votes();

let addon: (Addon & CodecsAddon) | undefined;
function open(): CodecsAddon {
  addon ??= loadAddon("codecs", import.meta.url) as Addon & CodecsAddon;
  return addon;
}
