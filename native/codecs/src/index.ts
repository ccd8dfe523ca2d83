import { type Addon, cudaLibrary, loadAddon, type NativeBuffer, NativeMissingError } from "@terse/native-loader";

export {
  checkBuffer,
  type NativeBuffer,
  NativeMissingError,
  NotFiniteError,
  refuseGone,
  wantedImplementation,
  warnOnce,
} from "@terse/native-loader";

/** Floats to encode, or to add to: fp32, contiguous; on the CPU unless a function says more. */
export type Floats = Float32Array | NativeBuffer;

/** The sign of an exact zero, or of a tied vote. */
export type Sign = "plus" | "minus";

/**
 * The parameters that determine a wire format, the same on every rank. Each codec takes some of them and refuses the
 * others. Names and meanings are those of `terse_codec_options` in `terse/codecs.h`.
 */
export interface Parameters {
  readonly bits?: number | undefined;
  readonly width?: number | undefined;
  readonly ranks?: number | undefined;
  readonly unscaled?: boolean | undefined;
  readonly levels?: "uniform" | "without-zero" | "logarithmic" | undefined;
  readonly dimensions?: number | undefined;
  readonly side?: number | undefined;
  readonly block?: number | undefined;
  /** Lengths, which add up to n. */
  readonly segments?: readonly number[] | undefined;
  readonly k?: number | undefined;
  readonly clip?: number | undefined;
  readonly indices?: "fixed" | "elias-fano" | undefined;
  readonly values?: "f32" | "f16" | "2bit" | "sign" | undefined;
}

/** The options of one encoding. */
export interface EncodeCall {
  readonly zero?: Sign | undefined;
  readonly hold?: Uint8Array | undefined;
  readonly seed?: number | undefined;
  readonly step?: number | undefined;
  readonly index?: number | undefined;
  readonly units?: Float32Array | undefined;
  /** Only with feedback; 1 unless given. */
  readonly decay?: number | undefined;
}

export interface DecodeCall {
  readonly scale: number;
  readonly units?: Float32Array | undefined;
  readonly hold?: Uint8Array | undefined;
}

/** What has been sent of an error, and which elements send nothing. An exact 0 is plus. */
export interface SumCall extends DecodeCall {
  readonly zero: "plus";
  /** The magnitude on the wire that was written of this error last; 0 where there is none. */
  readonly sent: number;
}

export interface MomentumCall extends Pick<SumCall, "zero" | "sent" | "hold"> {
  readonly keep: number;
  readonly add: number;
}

/** One implementation of one codec, as in `terse/codecs.h`. All implementations of a codec write the same bytes. */
export interface CodecKernel {
  readonly name: string; // "sign"
  readonly implementation: string; // "avx2", "scalar", "typescript"
  /** Bytes for n floats. */
  wireBytes(n: number, parameters: Parameters): number;
  /**
   * Fills `wire` (exactly wireBytes(n) bytes) and returns n; or returns the index of the first element that it refuses
   * (NaN, an infinity, a number that does not fit), `wire` undefined.
   */
  encode(wire: Uint8Array, x: Floats, parameters: Parameters, call: EncodeCall): number;
  /**
   * error = decay · error + x, wire = encode(error), error −= decode(wire). Absent from definitions: the three steps
   * are done one by one.
   */
  encodeWithFeedback?(wire: Uint8Array, x: Floats, error: Floats, parameters: Parameters, call: EncodeCall): number;
  /**
   * error = decay · error + scale Σ decode(wires), wire = encode(error), error −= decode(wire). Returns what `encode`
   * returns, or −1 where no encoder writes one of `wires`; then `error` is undefined. Absent from definitions.
   */
  encodeSumWithFeedback?(
    wire: Uint8Array,
    wires: readonly Uint8Array[],
    error: Floats,
    parameters: Parameters,
    call: EncodeCall & DecodeCall,
  ): number;
  /**
   * error = fma(add, g, fma(keep, m, error − sent sign(error))), wire = encode(error), in one pass. Returns n, or the
   * index of the first element of `error` that is not finite. Absent if the codec has no such pass.
   */
  encodeMomentum?(
    wire: Uint8Array,
    m: Floats,
    g: Floats,
    error: Floats,
    parameters: Parameters,
    call: MomentumCall,
  ): number;
  /**
   * error = error − sent sign(error) + scale Σ decode(wires), wire = encode(error), in one pass. Returns what
   * `encodeMomentum` returns, or −1 where no encoder writes one of `wires`.
   */
  encodeSum?(
    wire: Uint8Array,
    wires: readonly Uint8Array[],
    error: Floats,
    parameters: Parameters,
    call: SumCall,
  ): number;
  /**
   * sum += scale · decode(wire), the product rounded to fp32. False, and nothing added: no encoder writes such a wire.
   */
  decodeAdd(sum: Floats, wire: Uint8Array, parameters: Parameters, call: DecodeCall): boolean;
  /** x = scale · decode(wire). False as for `decodeAdd`, x undefined. Absent from definitions, which add to zeros. */
  decode?(x: Floats, wire: Uint8Array, parameters: Parameters, call: DecodeCall): boolean;
  /**
   * scales[r] = the scale of scale group r, as encode writes it; returns what `encode` returns. Absent if the codec has
   * no scales.
   */
  scales?(scales: Float32Array, x: Floats, parameters: Parameters): number;
}

/** The vote of one rank: its packed signs, or null if the rank is absent and not counted. */
export type Vote = Uint8Array | null;

/**
 * One way to count packed votes of n elements. Every array holds exactly ceil(n/8) bytes. 1 to 1024 votes, not all of
 * them null.
 */
export interface VoteKernel {
  readonly name: string; // "vote"
  readonly implementation: string;
  majority(out: Uint8Array, votes: readonly Vote[], n: number, options: { tie: Sign }): void;
  majorityOrZero(plus: Uint8Array, nonzero: Uint8Array, votes: readonly Vote[], n: number): void;
  tally(planes: readonly Uint8Array[], votes: readonly Vote[], n: number): void;
}

interface CodecsAddon {
  abi: number;
  implementations(): string[];
  floatAt(x: Floats, i: number): number;
  useThreads(threads: number): void;
  codecs(): CodecKernel[];
  votes(): VoteKernel[];
  openCuda(library: string): CodecKernel[];
}

/** The TERSE_CODECS_ABI of the C library inside the addon. */
export const abi = (): number => open().abi;

/**
 * The instruction levels that this machine can run, best first; "scalar" is the last. Throws NativeMissingError without
 * the addon.
 */
export const levels = (): readonly string[] => open().implementations();

/** x[i], also where x is memory behind a pointer, of a GPU too. Throws NativeMissingError without the addon. */
export const floatAt = (x: Floats, i: number): number => open().floatAt(x, i);

/**
 * How many threads share a long encode or decodeAdd, the caller's included; 1 at first. Throws NativeMissingError
 * without the addon.
 */
export const useThreads = (threads: number): void => open().useThreads(threads);

/**
 * Every codec implementation that this machine can run, best first within a codec. Throws NativeMissingError without
 * the addon.
 */
export const codecs = (): readonly CodecKernel[] => (listed ??= open().codecs());
let listed: readonly CodecKernel[] | undefined; // cached: every new codec needs the list

/**
 * The codecs that have kernels for floats on a GPU, with wires and masks in typed arrays; the bytes are those of the
 * CPU. They come from the library that TERSE_CODECS_CUDA names, else from the one built in the repository. Throws
 * NativeMissingError where there is none, or no addon.
 */
export const cudaCodecs = (): readonly CodecKernel[] =>
  (listedOfCuda ??= open().openCuda(cudaLibrary("codecs", import.meta.url)));
let listedOfCuda: readonly CodecKernel[] | undefined;

/** Every vote implementation that this machine can run, best first. Throws NativeMissingError without the addon. */
export const votes = (): readonly VoteKernel[] => open().votes();

let addon: (Addon & CodecsAddon) | undefined;
function open(): CodecsAddon {
  addon ??= ofThisAbi(loadAddon("codecs", import.meta.url) as Addon & CodecsAddon);
  return addon;
}

/** TERSE_CODECS_ABI of the terse/codecs.h that this file was written for. */
export const expectedAbi = 5;

/** An addon that was built from other sources than these would get arguments that it does not understand. */
export function ofThisAbi<A extends { abi: number }>(opened: A): A {
  if (opened.abi === expectedAbi) return opened;
  throw new NativeMissingError(
    `the native codecs addon has ABI ${opened.abi}, and this package speaks ABI ${expectedAbi}: rebuild it with \`./terse setup\` in the repository, or \`npx cmake-js rebuild\` in the folder of @terse/native-codecs.`,
  );
}
