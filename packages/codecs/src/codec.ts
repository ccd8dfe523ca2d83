/** What a codec is, and what defines one. */
import type { CodecKernel, EncodeCall, Floats, Parameters, Sign } from "@terse/native-codecs";
import type { KeptElements } from "./shared/indices/indices.ts";
import type { RandomStream } from "./shared/random/random.ts";

/**
 * A wire format for vectors of floats. Wires are little-endian, least significant bit first, pad bits 0.
 * `Call`: the options that one `encode` needs: what a zero becomes (Zeros), a seed and a step (RandomStream), or none.
 */
export interface Codec<Call extends EncodeCall = EncodeCall> {
  readonly name: string;
  /** They determine the wire format, and must be the same on every rank. */
  readonly parameters: Parameters;
  /** Which options `encode` takes: see Zeros, RandomStream and Units. */
  readonly takes: Takes;
  /** The layout of a wire with one field per element, in order. Undefined for other wires, such as top-k. */
  readonly layout: Layout | undefined;
  /**
   * Parts of a vector begin at multiples of this many elements: at whole bytes of fields, whole blocks and whole groups
   * of 64 draws.
   */
  readonly alignment: number;
  /** The levels of this codec as whole numbers that can be summed over ranks. Undefined where they cannot. */
  readonly summable: Summable | undefined;
  /** The kept elements of each chunk in a wire of n floats of a sparse codec. Undefined for other codecs. */
  readonly kept: ((n: number) => readonly KeptElements[]) | undefined;
  /** The implementation that runs: "avx2", "scalar", "typescript", … All write the same bytes. */
  readonly implementation: string;
  /**
   * Whether floats on this device ("cpu", "cuda:0") can be encoded where they are, and wires decoded there: by the
   * GPU's kernels, where they are built and the codec has some.
   */
  runsOn(device: string): boolean;
  /**
   * All implementations that run on this machine, best first, the definition last. For tests and benchmarks: they check
   * no arguments.
   */
  kernels(): readonly CodecKernel[];
  /**
   * The codec for the elements [begin, end) of a vector of n: its segments are cut there, and k is the part's share,
   * rounded up. `begin` is a multiple of `alignment`.
   */
  forPart(begin: number, end: number, n: number): Codec<Call>;
  /** Bytes for n floats. RangeError if n is not a whole number of 0 or more, or does not fit the parameters. */
  wireBytes(n: number): number;
  /**
   * Writes x (n floats) to `wire`, which has exactly wireBytes(n) bytes. NotFiniteError, with the index, at the first
   * NaN or infinity in x; RangeError at a number that this codec cannot write. After an error the contents of `wire`
   * are undefined. The floats of this call and of the others may be on a device where the codec runs, all on one,
   * but those of `encodeSumWithFeedback` are on the CPU.
   */
  encode(wire: Uint8Array, x: Floats, ...call: CallOf<Call>): void;
  /**
   * Error feedback: error = decay · error + x, wire = encode(error), error −= decode(wire). `error` (n floats, zeros
   * before the first step) keeps what was not sent. Errors as in `encode`; after one `error` has its old values, up to
   * rounding. Seide et al. 2014, "1-Bit Stochastic Gradient Descent"; Karimireddy et al. 2019, "Error Feedback Fixes
   * SignSGD".
   */
  encodeWithFeedback(wire: Uint8Array, x: Floats, error: Floats, ...call: CallOf<Call & Decay>): void;
  /**
   * What the owner of a chunk does with the wires of all ranks: error = decay · error + scale Σ decode(wires), in the
   * order of the wires; wire = encode(error), error −= decode(wire). `scale` defaults to 1. Errors as in `encode` and
   * in `decodeAdd`; after one that the arguments do not show, `error` is undefined.
   */
  encodeSumWithFeedback(
    wire: Uint8Array,
    wires: readonly Uint8Array[],
    error: Floats,
    ...call: CallOf<Call & Decay & Pick<DecodeOptions, "scale">>
  ): void;
  /**
   * sum += scale · decode(wire), in fp32; held elements keep their value. `scale` defaults to 1. BadWireError if the
   * wire holds an index outside of `sum`, NaN or infinity, which no encoder writes; then nothing is added.
   */
  decodeAdd(sum: Floats, wire: Uint8Array, options?: DecodeOptions): void;
  /**
   * x = scale · decode(wire), in one pass; held elements are 0. As `decodeAdd`, but after a BadWireError x is
   * undefined.
   */
  decode(x: Floats, wire: Uint8Array, options?: DecodeOptions): void;
  /**
   * The scale of each scale group of x, as `encode` writes it; in `into` if given. Errors as in `encode`; TypeError if
   * the codec cannot compute scales apart from encoding.
   */
  scales(x: Floats, into?: Float32Array): Float32Array;
}

/** Which options a codec's `encode` takes beside the floats. */
export interface Takes {
  readonly zero?: boolean;
  readonly hold?: boolean;
  /** seed and step, and perhaps index. */
  readonly random?: boolean;
  /** units, if the parameters say unscaled. */
  readonly units?: boolean;
}

// biome-ignore lint/complexity/noBannedTypes: "every option may be left out" is exactly what {} asks.
type CallOf<Call> = {} extends Call ? [call?: Call] : [call: Call];

/** An option of `encodeWithFeedback`. Sarfi et al. 2025, SparseLoCo, https://arxiv.org/abs/2508.15706, take 0.95. */
export interface Decay {
  /**
   * What the error is multiplied by before x is added, in fp32: more than 0, and at most 1, which it is unless given.
   */
  readonly decay?: number | undefined;
}

/** Options of codecs with no code for zero: the sign that stands for an exact zero (or −0.0), and a mask. */
export interface Zeros {
  readonly zero: Sign;
  /**
   * ceil(n/8) bytes, bit 1 = this element is masked: written as 0, not decoded. The mask must be the same on every
   * rank.
   */
  readonly hold?: Uint8Array | undefined;
}

/**
 * Units of an unscaled wire: the value of one level in each scale group, which the ranks have agreed on. They replace
 * the scales of x.
 */
export interface Units {
  /** One per scale group: 0 or more, and (2^width − 1) · unit finite in fp32. Where the unit is 0, levels are 0. */
  readonly units?: Float32Array | undefined;
}

/**
 * Options of `decodeAdd` and `decode`. `scale` times the decoded values is added; 1 unless given. Elements of the mask
 * `hold` (⌈n/8⌉ bytes) are not decoded.
 */
export interface DecodeOptions extends Units {
  scale?: number | undefined;
  hold?: Uint8Array | undefined;
}

/**
 * A wire whose part is the wire of a part: first the scales, if there are any, then one field per element.
 *
 *   wire of n elements   | scales | ⌈n · fieldBits / 8⌉ bytes of fields |
 */
export interface Layout {
  /** Bits of one element's field. */
  readonly fieldBits: number;
  /** How many fp32 each scale group has before the fields. */
  readonly scales: number;
}

/**
 * Levels q = x / unit, from −s to s, that every rank measures with the same units, so that Σ q can be formed on the
 * wire.
 */
export interface Summable {
  /** Bits of one level: s ≤ 2^(bits − 1) − 1. */
  readonly bits: number;
  readonly s: number;
  /** Level s stands for this many times the scale. */
  readonly reach: number;
  /**
   * The unscaled codec of these levels, in fields with room for the sum of `ranks` wires. RangeError where no field has
   * it.
   */
  codec(ranks: number): Codec<Zeros & RandomStream & Units>;
}

/** How a codec carries gradients. */
export interface OfGradients {
  /** The parameters that are chosen; others follow from the vectors. */
  readonly chosen?: Readonly<Record<string, ChosenParameter>>;
  /** Why an error could grow without end, so that there is no error feedback; undefined where there is. */
  readonly noFeedback?: (parameters: Parameters) => string | undefined;
}

/** A parameter of a codec that users of a gradient compression choose. */
export interface ChosenParameter {
  readonly means: string; // "the bits of an element"
  readonly needed?: boolean;
  /** It is chosen as a share of the elements, from 0 to 1, in an option of this name. */
  readonly asShare?: string;
  /** It is one of these words; the first is the default. */
  readonly choices?: readonly string[];
}

/** A codec in TypeScript, in plain loops. It is the definition: every other implementation writes the same bytes. */
export interface Definition extends CodecKernel {
  readonly takes: Takes;
  /** Unless given, gradients do not go through it. */
  readonly gradients?: OfGradients;
  /** See `Codec.layout`. */
  layout?(parameters: Parameters): Layout;
  /** See `Codec.summable`. */
  summable?(parameters: Parameters): Summable | undefined;
  /** See `Codec.kept`. */
  kept?(n: number, parameters: Parameters): readonly KeptElements[];
  /** Elements that are encoded together, which a part must not cut; `block`, or 1, unless given. */
  blockLength?(parameters: Parameters): number;
  /** The parameters for the elements [begin, end) of n; with `segments` cut there unless given. */
  partParameters?(parameters: Parameters, begin: number, end: number, n: number): Parameters;
}

/** No encoder writes such a wire: it was damaged, or written with other parameters. */
export class BadWireError extends RangeError {
  override name = "BadWireError";
}
