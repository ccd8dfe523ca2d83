/**
 * The chunk of a vector that each rank owns, and the cuts of the whole vector's wire into the wires of its chunks.
 *
 *   wire of the whole     | scales of all scale groups | fields of chunk 0 | fields of chunk 1 | …
 *   wire of a chunk       | scales of its scale groups | its fields |            a wire of `codecs[r]`
 *
 * Chunks begin at multiples of the codec's `alignment`: whole bytes of fields, and whole blocks where blocks share a
 * scale. A segment that lies in two chunks has its scale in both wires.
 */
import { type Codec, type Floats, scaleGroupsWithin } from "@terse/codecs";
import { perCodec } from "../per-codec.ts";
import type { Scratch } from "../scratch.ts";

/** Options of one encoding. A codec uses those that its `takes` lists. */
export interface EncodeOptions {
  /** The sign of an exact zero on a wire without zeros; plus unless given. */
  readonly zero?: "plus" | "minus" | undefined;
  /** A mask of ⌈n / 8⌉ bytes, the same on every rank. Masked elements are not sent and do not count in the scales. */
  readonly hold?: Uint8Array | undefined;
  /**
   * For random rounding: the same on every rank, with a new `step` at each step. Each rank still draws its own random
   * numbers.
   */
  readonly seed?: number | undefined;
  readonly step?: number | undefined;
  /**
   * The place of x[0] in a longer vector, a multiple of 64: random numbers then belong to its elements, in whatever
   * requests it is cut.
   */
  readonly offset?: number | undefined;
}

/** Options of an encoding with an error, which keeps what the wire does not carry. */
export interface FeedbackOptions extends EncodeOptions {
  /** What each error is multiplied by before the new vector is added: more than 0, and at most 1. 1 unless given. */
  readonly decay?: number | undefined;
}

/** The chunks of a vector of n floats. */
export const ownedChunks = perCodec((codec, n: number, ranks: number) => new OwnedChunks(codec, n, ranks));

type Encode = (codec: Codec, wire: Uint8Array, begin: number, end: number) => void;

export class OwnedChunks {
  readonly n: number;
  readonly ranks: number;
  readonly codec: Codec;
  /** Rank r owns the elements [starts[r], starts[r + 1]). */
  readonly starts: readonly number[];
  /** The codec of each chunk's wire. */
  readonly codecs: readonly Codec[];
  /**
   * Whether the vector is encoded as a whole, with scales that reach beyond a chunk, and its wire is cut afterwards.
   */
  readonly encodedWhole: boolean;

  constructor(codec: Codec, n: number, ranks: number) {
    this.n = n;
    this.ranks = ranks;
    this.codec = codec;
    this.encodedWhole = codec.layout !== undefined;
    const unit = codec.alignment;
    const units = Math.ceil(n / unit);
    this.starts = Array.from({ length: ranks + 1 }, (_, r) => Math.min(n, unit * Math.floor((r * units) / ranks)));
    this.codecs = Array.from({ length: ranks }, (_, r) => codec.forPart(this.starts[r]!, this.starts[r + 1]!, n));
  }

  lengthOf(r: number): number {
    return this.starts[r + 1]! - this.starts[r]!;
  }

  /** Bytes of chunk r's wire. */
  bytesOf(r: number): number {
    const length = this.lengthOf(r);
    return length === 0 ? 0 : this.codecs[r]!.wireBytes(length);
  }

  /** Bytes of each chunk's wire. */
  get sizes(): number[] {
    return Array.from({ length: this.ranks }, (_, r) => this.bytesOf(r));
  }

  /** Bytes of the wire of the whole vector; 0 if each chunk is encoded by itself. */
  get wholeBytes(): number {
    return this.encodedWhole && this.n > 0 ? this.codec.wireBytes(this.n) : 0;
  }

  /** Writes every chunk's wire. `encode` is called once for the whole vector, or once for each chunk. */
  write(wires: readonly Uint8Array[], scratch: Scratch, encode: Encode): void {
    if (this.n === 0) return;
    if (!this.encodedWhole) {
      for (const [r, wire] of wires.entries())
        if (wire.length > 0) encode(this.codecs[r]!, wire, this.starts[r]!, this.starts[r + 1]!);
      return;
    }
    using whole = scratch.loan(this.wholeBytes);
    encode(this.codec, whole.bytes, 0, this.n);
    for (const [r, wire] of wires.entries()) this.#cut(whole.bytes, r, wire);
  }

  /** sum += scale · decode(wire), for several wires of chunk r, one after the other. */
  add(r: number, wires: readonly Uint8Array[], sum: Floats, { hold }: EncodeOptions, scale: number): void {
    if (this.lengthOf(r) === 0) return;
    for (const wire of wires) this.codecs[r]!.decodeAdd(sum, wire, { scale, ...this.#maskOf(r, hold) });
  }

  /** into += scale · decode(wire), for the wire of each chunk; without `into` x ← scale · decode(wire). */
  handOut(wires: readonly Uint8Array[], x: Floats, into: Floats | undefined, { hold }: EncodeOptions, scale = 1): void {
    this.read(wires, x, into, (r) => [this.codecs[r]!, { scale, ...this.#maskOf(r, hold) }]);
  }

  /** As `handOut`, where `wayOf` says with which codec and options each chunk's wire is read. */
  read(
    wires: readonly Uint8Array[],
    x: Floats,
    into: Floats | undefined,
    wayOf: (r: number) => [codec: Codec, options: object],
  ): void {
    for (const [r, wire] of wires.entries()) {
      if (this.lengthOf(r) === 0) continue;
      const [codec, options] = wayOf(r);
      codec[into ? "decodeAdd" : "decode"](sliceOf(into ?? x, this.starts[r]!, this.starts[r + 1]!), wire, options);
    }
  }

  /** The part of a mask for chunk r, if the codec takes one. */
  #maskOf(r: number, hold: Uint8Array | undefined): Pick<EncodeOptions, "hold"> {
    if (!hold || !this.codec.takes.hold) return {};
    return { hold: hold.subarray(this.starts[r]! / 8, Math.ceil(this.starts[r + 1]! / 8)) };
  }

  /**
   * The codec's options for the elements [begin, end). Each rank and each owner has a `stream` of its own, and so its
   * own random numbers.
   */
  call(options: EncodeOptions, stream: number, begin = 0, end = this.n): never {
    const { zero, hold, random } = this.codec.takes;
    const drawn = options.offset === undefined ? 64 * Math.ceil(this.n / 64) : 2 ** 40; // numbers of one stream
    return {
      ...(zero && { zero: options.zero ?? "plus" }),
      ...(hold && options.hold && { hold: options.hold.subarray(begin / 8, Math.ceil(end / 8)) }),
      ...(random && { seed: options.seed, step: options.step, index: stream * drawn + (options.offset ?? 0) + begin }),
    } as never; // the general type Codec does not know a codec's own options
  }

  /** Copies chunk r's scales and fields out of the wire of the whole vector. */
  #cut(whole: Uint8Array, r: number, into: Uint8Array): void {
    const [begin, end] = [this.starts[r]!, this.starts[r + 1]!];
    if (begin === end) return;
    const { fieldBits: bits, scales } = this.codec.layout!;
    const [first, count] = scaleGroupsWithin(this.codec.parameters, begin, end);
    const ofGroup = 4 * scales; // bytes
    const fields = whole.subarray(whole.length - Math.ceil((this.n * bits) / 8));
    into.set(whole.subarray(ofGroup * first, ofGroup * (first + count)));
    into.set(fields.subarray((begin * bits) / 8, Math.ceil((end * bits) / 8)), ofGroup * count);
  }
}

/** Elements [begin, end), as a view. */
export function sliceOf(x: Floats, begin: number, end: number): Floats {
  if (x instanceof Float32Array) return x.subarray(begin, end);
  return { pointer: x.pointer + BigInt(4 * begin), length: end - begin, dtype: x.dtype, device: x.device };
}

/**
 * Checks options before anything is sent. Later their RangeError would be taken for a value that the codec cannot
 * write.
 */
export function checkOptions(where: string, { name, takes }: Codec, n: number, options: EncodeOptions): void {
  const { seed, step, hold, offset = 0 } = options;
  for (const [what, value] of Object.entries(takes.random ? { seed, step } : {}))
    if (!Number.isSafeInteger(value) || value! < 0)
      throw new RangeError(
        `${where}: ${what} is ${value}, and ${name} needs it to draw random numbers: give a whole number, the same on every rank.`,
      );
  if (!Number.isSafeInteger(offset) || offset < 0 || offset % 64 !== 0)
    throw new RangeError(`${where}: offset is ${offset}, and must be a multiple of 64, the same on every rank.`);
  if (hold && hold.length !== Math.ceil(n / 8))
    throw new RangeError(
      `${where}: hold has ${hold.length} bytes, and ${n} elements take ${Math.ceil(n / 8)}: give one bit for each.`,
    );
}

/** RangeError before anything is sent, as above. */
export function checkDecay(where: string, decay = 1): void {
  if (!(Math.fround(decay) > 0 && decay <= 1))
    throw new RangeError(
      `${where}: decay is ${decay}, and must be more than 0 and at most 1: the error is multiplied by it at each step.`,
    );
}

/** RangeError if a vector does not have the expected length; `why` explains that length. */
export function checkLength(where: string, what: string, x: Floats, length: number, why: string): void {
  if (x.length === length) return;
  throw new RangeError(`${where}: ${what} has ${x.length} floats, and must have ${length}, ${why}.`);
}
