import {
  type CodecKernel,
  type EncodeCall,
  type Floats,
  floatAt,
  NotFiniteError,
  codecs as nativeCodecs,
  levels as nativeLevels,
  type Parameters,
  type Sign,
} from "@terse/native-codecs";
import { choose, implementations } from "./implementation.ts";
import { widthOf } from "./shared/fields/fields.ts";
import { refuseGone, refuseOverlap } from "./shared/overlap.ts";
import { checkWhole } from "./shared/parameters.ts";
import type { Draws } from "./shared/random/random.ts";
import { largestFloat } from "./shared/rounding.ts";
import { scaleGroupCount, segmentsWithin } from "./shared/scale-groups/scale-groups.ts";

/**
 * How a vector of floats is written on a wire. Wires are little-endian, least significant bit first, pad bits 0.
 * `Call` is what one encoding needs beside the floats: what a zero becomes (Zeros), a seed and a step (Draws), or nothing.
 */
export interface Codec<Call extends EncodeCall = EncodeCall> {
  readonly name: string;
  /** What shapes the wire, the same on every rank. */
  readonly parameters: Parameters;
  /** What `encode` must be told: see Zeros and Draws. */
  readonly takes: Takes;
  /** How the wire is laid out, where every element has one field and fields are in order. Undefined for other wires, as of top-k. */
  readonly layout: Layout | undefined;
  /** Parts of a vector begin at multiples of this many elements: at whole bytes of fields, whole blocks and whole groups of 64 draws. */
  readonly alignment: number;
  /** The levels of this codec as whole numbers that can be summed over ranks. Undefined where they cannot. */
  readonly summable: Summable | undefined;
  /** The implementation that runs: "avx2", "scalar", "typescript", … All write the same bytes. */
  readonly implementation: string;
  /** Every implementation that can run here, best first, the definition last: for tests and benchmarks. They trust their arguments. */
  kernels(): readonly CodecKernel[];
  /**
   * The codec for the elements [begin, end) of a vector of n: its segments are cut there, and k is the part's share, rounded up.
   * `begin` is a multiple of `alignment`.
   */
  forPart(begin: number, end: number, n: number): Codec<Call>;
  /** Bytes for n floats. RangeError where n is no number of floats, or none that the parameters fit. */
  wireBytes(n: number): number;
  /**
   * Writes x (n floats) to `wire`, which holds exactly wireBytes(n) bytes. NaN or an infinity anywhere in x: NotFiniteError with
   * the first one's index; a number that this codec cannot write: RangeError. `wire` is undefined then.
   */
  encode(wire: Uint8Array, x: Floats, ...call: CallOf<Call>): void;
  /**
   * Error feedback: error += x, wire = encode(error), error −= decode(wire). What could not be sent waits in `error` (n floats, 0 at
   * first). Errors as in `encode`; x is looked at before `error` is touched.
   * Seide et al. 2014, "1-Bit Stochastic Gradient Descent"; Karimireddy et al. 2019, "Error Feedback Fixes SignSGD".
   */
  encodeWithFeedback(wire: Uint8Array, x: Floats, error: Floats, ...call: CallOf<Call>): void;
  /**
   * sum += scale · decode(wire), in fp32; held elements keep their value. `scale` is 1 unless given.
   * A wire that no encoder writes, and that would lead out of `sum` or add NaN: BadWireError, and nothing is added.
   */
  decodeAdd(sum: Floats, wire: Uint8Array, options?: DecodeOptions): void;
  /**
   * The scale of each scale group of x, as `encode` would write it, in `into` if given. Errors as there; TypeError where scale groups have no
   * scale (others than l1, linf, qsgd and int8).
   */
  scales(x: Floats, into?: Float32Array): Float32Array;
}

// biome-ignore lint/complexity/noBannedTypes: "every option may be left out" is exactly what {} asks.
type CallOf<Call> = {} extends Call ? [call?: Call] : [call: Call];

/** The sign of an exact zero, −0.0 included, and lanes that say nothing. */
export interface Zeros {
  readonly zero: Sign;
  /** ceil(n/8) bytes, bit 1 = this lane says nothing and is written as 0; a mask must be the same on every rank. */
  readonly hold?: Uint8Array | undefined;
}

/** What one level stands for in each scale group of an unscaled wire, agreed upon elsewhere, in place of what is measured. */
export interface Units {
  /** One a scale group: 0 or more, and 2^width − 1 of them finite in fp32. Where it is 0, levels are 0. */
  readonly units?: Float32Array | undefined;
}

export interface DecodeOptions extends Units {
  scale?: number | undefined;
  hold?: Uint8Array | undefined;
}

/** What a codec's `encode` is told beside the floats. */
export interface Takes {
  readonly zero?: boolean;
  readonly hold?: boolean;
  /** seed and step, and perhaps index. */
  readonly random?: boolean;
  /** units, where it is unscaled. */
  readonly units?: boolean;
}

/**
 * A wire whose part is the wire of a part: first the scales, if there are any, then one field per element.
 *
 *   wire of n elements   | scales | ⌈n · fieldBits / 8⌉ bytes of fields |
 */
export interface Layout {
  /** Bits of one element's field. */
  readonly fieldBits: number;
  /** Whether one fp32 for each scale group comes before the fields. */
  readonly scales: boolean;
}

/** Levels q = x / unit, from −s to s, that every rank measures with the same units, so that Σ q can be formed on the wire. */
export interface Summable {
  /** Bits of one level: s = 2^(bits − 1) − 1. */
  readonly bits: number;
  /** Level s stands for this many times the scale. */
  readonly reach: number;
  /** The unscaled codec of these levels, in fields with room for the sum of `ranks` wires. RangeError where no field has it. */
  codec(ranks: number): Codec<Zeros & Draws & Units>;
}

/** A codec in TypeScript, plain loops: the definition that every other implementation equals. */
export interface Definition extends CodecKernel {
  readonly takes: Takes;
  /** See `Codec.layout`. */
  layout?(parameters: Parameters): Layout;
  /** See `Codec.summable`. */
  summable?(parameters: Parameters): Summable | undefined;
  /** Elements that are encoded together, which a part must not cut; `block`, or 1, unless given. */
  blockLength?(parameters: Parameters): number;
  /** The parameters for the elements [begin, end) of n; with `segments` cut there unless given. */
  partParameters?(parameters: Parameters, begin: number, end: number, n: number): Parameters;
}

/** The wire is one that no encoder writes: it was damaged, or written with other parameters. */
export class BadWireError extends RangeError {
  override name = "BadWireError";
}

/** A codec as people call it: its arguments checked, its best implementation run. `checked`: parameters, by its factory. */
// @__NO_SIDE_EFFECTS__
export function codec<Call extends EncodeCall>(definition: Definition, checked: Parameters = {}): Codec<Call> {
  const parameters = kept(checked);
  let chosen: CodecKernel | undefined;
  const kernel = (): CodecKernel => {
    chosen ??= choose(implementations(definition, nativeCodecs), nativeLevels);
    return chosen;
  };
  const { name, takes } = definition;
  const wireBytes = (n: number): number => {
    checkWhole(`${name}.wireBytes`, "n", n, 0);
    return definition.wireBytes(n, parameters);
  };

  const checkEncoding = (where: string, wire: Uint8Array, x: Floats, call: EncodeCall): void => {
    checkFloats(where, "x", x);
    checkBytes(where, "wire", wire, wireBytes(x.length), `${x.length} floats`);
    checkCall(where, takes, call, x.length);
    checkUnits(where, takes, call.units, x.length, parameters);
    refuseOverlap(where, "wire", wire, { x, hold: call.hold, units: call.units });
  };

  return {
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
    get implementation() {
      return kernel().implementation;
    },
    kernels: () => implementations(definition, nativeCodecs).kernels,
    forPart(begin, end, n) {
      const part = (definition.partParameters ?? segmentsCut)(parameters, begin, end, n);
      return part === parameters ? this : codec(definition, part);
    },
    wireBytes,

    encode(wire, x, given: EncodeCall = {}) {
      const where = `${name}.encode`;
      const call = { ...given }; // read once, before any length is looked at: a getter may do anything
      checkEncoding(where, wire, x, call);
      accept(where, kernel().encode(wire, x, parameters, call), x);
    },

    encodeWithFeedback(wire, x, error, given: EncodeCall = {}) {
      const where = `${name}.encodeWithFeedback`;
      const call = { ...given };
      checkEncoding(where, wire, x, call);
      checkFloats(where, "error", error);
      if (error.length !== x.length)
        throw new RangeError(`${where}: error has ${error.length} floats, and x has ${x.length}.`);
      refuseOverlap(where, "error", error, { x, wire, hold: call.hold, units: call.units });
      const native = kernel();
      const accepted = native.encodeWithFeedback
        ? native.encodeWithFeedback(wire, x, error, parameters, call)
        : withFeedback(native, wire, floats(x), floats(error), parameters, call);
      accept(where, accepted, x, error);
    },

    decodeAdd(sum, wire, { scale = 1, hold, units } = {}) {
      const where = `${name}.decodeAdd`;
      checkFloats(where, "sum", sum);
      checkBytes(where, "wire", wire, wireBytes(sum.length), `${sum.length} floats`);
      checkHold(where, takes, hold, sum.length);
      checkUnits(where, takes, units, sum.length, parameters);
      refuseOverlap(where, "sum", sum, { wire, hold, units });
      if (typeof scale !== "number" || !Number.isFinite(Math.fround(scale)))
        throw new RangeError(`${where}: scale is ${String(scale)}, and must be a number that is finite in fp32.`);
      if (!kernel().decodeAdd(sum, wire, parameters, { scale, hold, units })) {
        throw new BadWireError(
          `${where}: no encoder writes such a wire: it was damaged, or written with other parameters than ${JSON.stringify(parameters)}.`,
        );
      }
    },

    scales(x, into) {
      const where = `${name}.scales`;
      checkFloats(where, "x", x);
      const compute = kernel().scales;
      if (!compute) throw new TypeError(`${where}: scale groups have no scales in this codec.`);
      const groups = scaleGroupCount(x.length, parameters);
      const scales = into ?? new Float32Array(groups);
      if (!(scales instanceof Float32Array)) throw new TypeError(`${where}: into must be a Float32Array.`);
      refuseGone(where, "into", scales);
      if (scales.length !== groups)
        throw new RangeError(
          `${where}: into has room for ${scales.length} scales, and ${x.length} floats have ${groups} scale groups.`,
        );
      refuseOverlap(where, "into", scales, { x });
      accept(where, compute(scales, x, parameters), x);
      return scales;
    },
  };
}

function segmentsCut(parameters: Parameters, begin: number, end: number): Parameters {
  const { segments } = parameters;
  if (!segments) return parameters;
  return { ...parameters, segments: segmentsWithin(segments, begin, end).map(({ length }) => length) };
}

/** Of a power of two and a whole number. */
function leastCommonMultiple(power: number, of: number): number {
  let multiple = of;
  while (multiple % power !== 0) multiple *= 2;
  return multiple;
}

/** What nobody else changes any more. */
function kept({ segments, ...others }: Parameters): Parameters {
  return Object.freeze({ ...others, ...(segments && { segments: Object.freeze([...segments]) }) });
}

/** error += x, wire = encode(error), error −= decode(wire), one by one. As terse_codec_encode_with_feedback. */
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
  const sum = error.map((value, i) => value + x[i]!);
  const accepted = kernel.encode(wire, sum, parameters, call);
  if (accepted < x.length) return accepted;
  error.set(sum);
  kernel.decodeAdd(error, wire, parameters, { scale: -1, hold: call.hold, units: call.units });
  return accepted;
}

/** Floats as the TypeScript definitions read them: they cannot follow a pointer, and shift indices, which takes 31 bits. */
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

export function checkBytes(where: string, what: string, bytes: Uint8Array, expected: number, holds: string): void {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`${where}: ${what} must be a Uint8Array.`);
  refuseGone(where, what, bytes);
  if (bytes.length !== expected) {
    throw new RangeError(
      `${where}: ${what} has ${bytes.length} bytes, and ${holds} take ${expected}; pass a view of exactly that many.`,
    );
  }
}

/** Says what was refused and where. With error feedback what is encoded is x + error; `error` holds what it held. */
function accept(where: string, accepted: number, x: Floats, error?: Floats): void {
  if (accepted === x.length) return;
  const given = valueAt(x, accepted);
  if (!Number.isFinite(given)) throw new NotFiniteError(`${where}: x`, accepted, given);
  const what = error ? `x[${accepted}] + error` : "x";
  const value = error ? Math.fround(given + valueAt(error, accepted)) : given;
  if (!Number.isFinite(value)) throw new NotFiniteError(`${where}: ${what}`, accepted, value);
  throw new RangeError(`${where}: ${what}[${accepted}] is ${value}, which this codec cannot write.`);
}

const valueAt = (x: Floats, i: number): number => (x instanceof Float32Array ? x[i]! : floatAt(x, i));

function checkFloats(where: string, what: string, x: Floats): void {
  if (x instanceof Float32Array) {
    refuseGone(where, what, x);
    return;
  }
  if (typeof x?.pointer !== "bigint")
    throw new TypeError(`${where}: ${what} must be a Float32Array, or memory with pointer, length, dtype and device.`);
  if (x.dtype !== "f32" || x.device !== "cpu")
    throw new TypeError(`${where}: ${what} is ${x.dtype} on ${x.device}, and must be f32 on cpu.`);
  checkWhole(where, `${what}.length`, x.length, 0);
  if (x.length > 0 && (x.pointer <= 0n || x.pointer >= 2n ** 64n || x.pointer % 4n !== 0n))
    throw new RangeError(`${where}: ${what}.pointer is ${x.pointer}, and must be an address that is a multiple of 4.`);
}

function checkCall(where: string, takes: Takes, { zero, hold, seed, step, index }: EncodeCall, n: number): void {
  if (takes.zero && zero !== "plus" && zero !== "minus") {
    throw new TypeError(
      `${where}: zero is ${String(zero)}, and must be "plus" or "minus"; for "alternate" use signAt(policy, step), for "hold" a mask.`,
    );
  }
  checkHold(where, takes, hold, n);
  if (!takes.random) return;
  for (const [what, value] of Object.entries({ seed, step, index: index ?? 0 })) {
    if (!Number.isSafeInteger(value) || value! < 0) {
      throw new RangeError(
        `${where}: ${what} is ${String(value)}, and must be a whole number, 0 or more: the same draws come from the same seed and step.`,
      );
    }
  }
  if ((index ?? 0) % 64 !== 0) throw new RangeError(`${where}: index is ${index}, and must be a multiple of 64.`);
}

function checkHold(where: string, takes: Takes, hold: Uint8Array | undefined, n: number): void {
  if (hold === undefined) return;
  if (!takes.hold) throw new TypeError(`${where}: this codec takes no mask; leave \`hold\` out.`);
  checkBytes(where, "hold", hold, Math.ceil(n / 8), `${n} lanes`);
}

function checkUnits(where: string, takes: Takes, units: Float32Array | undefined, n: number, of: Parameters): void {
  if (units === undefined) return;
  if (!takes.units || !of.unscaled)
    throw new TypeError(
      `${where}: only unscaled l1 and linf take units, which stand for the scales that are not on the wire.`,
    );
  if (!(units instanceof Float32Array)) throw new TypeError(`${where}: units must be a Float32Array.`);
  const groups = scaleGroupCount(n, of);
  if (units.length !== groups)
    throw new RangeError(
      `${where}: there are ${units.length} units, and ${n} floats have ${groups} scale groups: one each.`,
    );
  const bad = units.findIndex((unit) => !(unit >= 0 && unit * (2 ** widthOf(of) - 1) <= largestFloat));
  if (bad >= 0)
    throw new RangeError(
      `${where}: unit ${bad} is ${units[bad]}, and must be 0 or more, and times ${2 ** widthOf(of) - 1} finite in fp32.`,
    );
}

export type { Draws };
