import {
  type CodecKernel,
  type DecodeCall,
  type EncodeCall,
  type Floats,
  codecs as nativeCodecs,
  levels as nativeLevels,
  type Parameters,
  refuseGone,
  type Sign,
} from "@terse/native-codecs";
import {
  accept,
  checkBytes,
  checkCall,
  checkedDecay,
  checkFactor,
  checkFloats,
  checkHold,
  checkUnits,
  type Takes,
} from "./arguments.ts";
import { choose, implementations } from "./implementation.ts";
import type { KeptElements } from "./shared/indices/indices.ts";
import { refuseOverlap } from "./shared/overlap.ts";
import { checkWhole } from "./shared/parameters.ts";
import type { RandomStream } from "./shared/random/random.ts";
import { scaleGroupCount, segmentsWithin } from "./shared/scale-groups/scale-groups.ts";

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
   * are undefined.
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
   * order of the wires; wire = encode(error), error −= decode(wire). `scale` defaults to 1. Errors as in `encode` and in
   * `decodeAdd`; after one that the arguments do not show, `error` is undefined.
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
  /** x = scale · decode(wire), in one pass; held elements are 0. As `decodeAdd`, but after a BadWireError x is undefined. */
  decode(x: Floats, wire: Uint8Array, options?: DecodeOptions): void;
  /**
   * The scale of each scale group of x, as `encode` writes it; in `into` if given. Errors as in `encode`; TypeError if
   * the codec cannot compute scales apart from encoding.
   */
  scales(x: Floats, into?: Float32Array): Float32Array;
}

// biome-ignore lint/complexity/noBannedTypes: "every option may be left out" is exactly what {} asks.
type CallOf<Call> = {} extends Call ? [call?: Call] : [call: Call];

/** An option of `encodeWithFeedback`. Sarfi et al. 2025, SparseLoCo, https://arxiv.org/abs/2508.15706, take 0.95. */
export interface Decay {
  /** What the error is multiplied by before x is added, in fp32: more than 0, and at most 1, which it is unless given. */
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
 * Options of `decodeAdd` and `decode`. `scale` times the decoded values is added; 1 unless given. Elements of the mask `hold`
 * (⌈n/8⌉ bytes) are not decoded.
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

/**
 * The public object of a codec: it checks arguments and runs the best implementation. `checked`: parameters that the
 * factory has checked.
 */
// @__NO_SIDE_EFFECTS__
export function codec<Call extends EncodeCall>(definition: Definition, checked: Parameters = {}): Codec<Call> {
  const parameters = kept(checked);
  const kernel = kernelOf(definition);
  const { name, takes } = definition;
  const wireBytes = (n: number): number => {
    checkWhole(`${name}.wireBytes`, "n", n, 0);
    return definition.wireBytes(n, parameters);
  };

  const decodeBy =
    (method: "decodeAdd" | "decode", what: string): Codec["decodeAdd"] =>
    (to, wire, { scale = 1, hold, units } = {}) => {
      const where = `${name}.${method}`;
      checkFloats(where, what, to);
      checkBytes(where, "wire", wire, wireBytes(to.length), `${to.length} floats`);
      checkHold(where, takes, hold, to.length);
      checkUnits(where, takes, units, to.length, parameters);
      refuseOverlap(where, what, to, { wire, hold, units });
      checkFactor(where, "scale", scale);
      const { [method]: run, decodeAdd } = kernel();
      if (!run) floats(to).fill(0);
      if (!(run ?? decodeAdd)(to, wire, parameters, { scale, hold, units })) throw badWire(where, parameters);
    };

  const self: Codec<Call> = {
    name,
    parameters,
    takes,
    layout: definition.layout?.(parameters),
    alignment: leastCommonMultiple(
      takes.random ? 64 : 8,
      definition.blockLength?.(parameters) ?? parameters.block ?? 1,
    ),
    get summable() {
      return definition.summable?.(parameters);
    },
    kept: definition.kept && ((n) => definition.kept!(n, parameters)),
    get implementation() {
      return kernel().implementation;
    },
    kernels: () => implementations(definition, nativeCodecs).kernels,
    forPart(begin, end, n) {
      const part = (definition.partParameters ?? segmentsCut)(parameters, begin, end, n);
      return part === parameters ? self : codec(definition, part);
    },
    wireBytes,

    encode(wire, x, given: EncodeCall = {}) {
      const where = `${name}.encode`;
      const call = { ...given }; // copied before any length is read: a getter could change an array
      checkEncoding(self, where, wire, x, call);
      accept(where, kernel().encode(wire, x, parameters, call), x);
    },

    encodeWithFeedback(wire, x, error, given: EncodeCall = {}) {
      const where = `${name}.encodeWithFeedback`;
      const call = { ...given };
      checkEncoding(self, where, wire, x, call);
      checkFloats(where, "error", error);
      if (error.length !== x.length)
        throw new RangeError(
          `${where}: error has ${error.length} floats, and x has ${x.length}; give it as many, zeros at first.`,
        );
      refuseOverlap(where, "error", error, { x, wire, hold: call.hold, units: call.units });
      const decay = checkedDecay(where, call.decay);
      const native = kernel();
      const accepted = native.encodeWithFeedback
        ? native.encodeWithFeedback(wire, x, error, parameters, call)
        : withFeedback(native, wire, floats(x), floats(error), parameters, call);
      accept(where, accepted, x, { error, decay });
    },

    encodeSumWithFeedback(wire, wires, error, given: EncodeCall & { scale?: number | undefined } = {}) {
      const where = `${name}.encodeSumWithFeedback`;
      const call = { ...given, scale: given.scale ?? 1 };
      const all = [...wires];
      checkEncoding(self, where, wire, error, call, "error");
      checkWires(self, where, wire, all, error);
      refuseOverlap(where, "error", error, { hold: call.hold, units: call.units });
      checkedDecay(where, call.decay);
      checkFactor(where, "scale", call.scale);
      const native = kernel();
      const accepted = native.encodeSumWithFeedback
        ? native.encodeSumWithFeedback(wire, all, error, parameters, call)
        : sumWithFeedback(native, wire, all, floats(error), parameters, call);
      if (accepted < 0) throw badWire(where, parameters);
      accept(where, accepted, error, undefined, "the sum");
    },

    decodeAdd: decodeBy("decodeAdd", "sum"),
    decode: decodeBy("decode", "x"),

    scales(x, into) {
      const where = `${name}.scales`;
      checkFloats(where, "x", x);
      const compute = kernel().scales;
      if (!compute) throw new TypeError(`${where}: this codec computes no scales apart from encoding; call encode.`);
      const groups = scaleGroupCount(x.length, parameters);
      const scales = into ?? new Float32Array(groups);
      if (!(scales instanceof Float32Array)) throw new TypeError(`${where}: into must be a Float32Array.`);
      refuseGone(where, "into", scales);
      if (scales.length !== groups)
        throw new RangeError(
          `${where}: into has ${scales.length} elements, and ${x.length} floats have ${groups} scale groups; give one for each.`,
        );
      refuseOverlap(where, "into", scales, { x });
      accept(where, compute(scales, x, parameters), x);
      return scales;
    },
  };
  return self;
}

/** Chooses at the first call, so that a program may say before which implementation it wants. */
// @__NO_SIDE_EFFECTS__
export function kernelOf(definition: Definition): () => CodecKernel {
  let chosen: CodecKernel | undefined;
  return () => (chosen ??= choose(implementations(definition, nativeCodecs), nativeLevels));
}

type Wires = Pick<Codec, "takes" | "parameters" | "wireBytes">;

export function checkEncoding(
  { takes, parameters, wireBytes }: Wires,
  where: string,
  wire: Uint8Array,
  x: Floats,
  call: EncodeCall,
  what = "x",
): void {
  checkFloats(where, what, x);
  checkBytes(where, "wire", wire, wireBytes(x.length), `${x.length} floats`);
  checkCall(where, takes, call, x.length);
  checkUnits(where, takes, call.units, x.length, parameters);
  refuseOverlap(where, "wire", wire, { [what]: x, hold: call.hold, units: call.units });
}

/** Other ranks' wires, whose sum is added to `error`. */
export function checkWires(
  { wireBytes }: Wires,
  where: string,
  wire: Uint8Array,
  wires: readonly Uint8Array[],
  error: Floats,
): void {
  for (const [r, one] of wires.entries()) {
    checkBytes(where, `wires[${r}]`, one, wireBytes(error.length), `${error.length} floats`);
    refuseOverlap(where, "wire", wire, { [`wires[${r}]`]: one });
    refuseOverlap(where, "error", error, { [`wires[${r}]`]: one });
  }
}

export const badWire = (where: string, parameters: Parameters): BadWireError =>
  new BadWireError(
    `${where}: no encoder writes such a wire: it was damaged, or written with other parameters than ${JSON.stringify(parameters)}.`,
  );

function segmentsCut(parameters: Parameters, begin: number, end: number): Parameters {
  const { segments } = parameters;
  if (!segments) return parameters;
  return { ...parameters, segments: segmentsWithin(segments, begin, end).map(({ length }) => length) };
}

/** The least common multiple of a power of two and a whole number. */
function leastCommonMultiple(power: number, of: number): number {
  let multiple = of;
  while (multiple % power !== 0) multiple *= 2;
  return multiple;
}

/** A frozen copy, which the caller cannot change. */
function kept({ segments, ...others }: Parameters): Parameters {
  return Object.freeze({ ...others, ...(segments && { segments: Object.freeze([...segments]) }) });
}

/**
 * error = decay · error + x, wire = encode(error), error −= decode(wire), in three passes. As
 * terse_codec_encode_with_feedback.
 */
export function withFeedback(
  kernel: CodecKernel,
  wire: Uint8Array,
  x: Float32Array,
  error: Float32Array,
  parameters: Parameters,
  call: EncodeCall,
): number {
  const bad = x.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) return bad;
  const decay = Math.fround(call.decay ?? 1);
  const sum = error.map((value, i) => Math.fround(decay * value) + x[i]!);
  const accepted = kernel.encode(wire, sum, parameters, call);
  if (accepted < x.length) return accepted;
  error.set(sum);
  kernel.decodeAdd(error, wire, parameters, { ...call, scale: -1 });
  return accepted;
}

/**
 * error = decay · error + scale Σ decode(wires), wire = encode(error), error −= decode(wire), one after the other. As
 * terse_codec_encode_sum_with_feedback; −1 is a bad wire.
 */
export function sumWithFeedback(
  kernel: CodecKernel,
  wire: Uint8Array,
  wires: readonly Uint8Array[],
  error: Float32Array,
  parameters: Parameters,
  call: EncodeCall & DecodeCall,
): number {
  const decay = Math.fround(call.decay ?? 1);
  for (const [i, value] of error.entries()) error[i] = decay * value;
  for (const one of wires) if (!kernel.decodeAdd(error, one, parameters, call)) return -1;
  const accepted = kernel.encode(wire, error, parameters, call);
  if (accepted === error.length) kernel.decodeAdd(error, wire, parameters, { ...call, scale: -1 });
  return accepted;
}

/** Floats as the TypeScript definitions read them: no pointers, and fewer than 2³¹, because they shift indices. */
export function floats(x: Floats): Float32Array {
  if (!(x instanceof Float32Array))
    throw new TypeError(
      "the TypeScript implementation reads Float32Array only, not memory behind a pointer: build the native addon with `./terse setup`, or copy to a Float32Array.",
    );
  if (x.length >= 2 ** 31)
    throw new RangeError(
      `the TypeScript implementation takes at most ${2 ** 31 - 1} floats, got ${x.length}: build the native addon with \`./terse setup\`, or encode parts.`,
    );
  return x;
}
