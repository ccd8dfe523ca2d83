/**
 * How a vector is shared out among the ranks that own its chunks, and how the wire of the whole is cut into wires of the chunks.
 *
 *   wire of the whole     | scales of all regions | fields of chunk 0 | fields of chunk 1 | …
 *   wire of a chunk       | scales of its regions | its fields |            a wire of `codecs[r]`
 *
 * Chunks begin at whole bytes of fields, so at multiples of 8 elements, and at whole blocks where blocks share a scale. A segment
 * that lies in two chunks has its scale in both.
 */
import { type Codec, codecNamed, type Floats, type Parameters } from "@terse/codecs";
import type { Scratch } from "./scratch.ts";

/** What an encoding is told: which of them a codec takes, its `takes` says. */
export interface EncodeOptions {
  /** What an exact zero becomes on a wire that has none; plus unless given. */
  readonly zero?: "plus" | "minus" | undefined;
  /** ⌈n / 8⌉ bytes, the same on every rank: these lanes say nothing and keep out of the scales. */
  readonly hold?: Uint8Array | undefined;
  /** Of the draws: the same on every rank, another one each step. The ranks draw from different places all the same. */
  readonly seed?: number | undefined;
  readonly step?: number | undefined;
}

/** Formats with one field an element, in order, so that a part of the wire is the wire of a part. The others are written by chunk. */
const fieldBits: Readonly<Record<string, (parameters: Parameters) => number>> = {
  sign: () => 1,
  "scaled-sign": () => 1,
  int8: () => 8,
  bf16: () => 16,
  f16: () => 16,
  l1: ({ bits, width }) => width ?? bits!,
  linf: ({ bits, width }) => width ?? bits!,
  qsgd: ({ bits, width }) => width ?? bits!,
};
const scaled = ["scaled-sign", "int8", "l1", "linf", "qsgd"];

/** The chunks of a vector of n floats. Remembered, because the codecs of segments and of top-k take longer to make than to use. */
export function chunksOf(codec: Codec, n: number, ranks: number): Chunks {
  let known = remembered.get(codec);
  if (!known) {
    known = new Map();
    remembered.set(codec, known);
  }
  const key = `${n}/${ranks}`;
  let chunks = known.get(key);
  if (!chunks) {
    chunks = new Chunks(codec, n, ranks);
    known.set(key, chunks);
  }
  return chunks;
}

const remembered = new WeakMap<Codec, Map<string, Chunks>>();

type Encode = (codec: Codec, wire: Uint8Array, begin: number, end: number) => void;

export class Chunks {
  readonly n: number;
  readonly ranks: number;
  readonly codec: Codec;
  /** Rank r owns the elements [starts[r], starts[r + 1]). */
  readonly starts: readonly number[];
  /** What the wires of each chunk are written with. */
  readonly codecs: readonly Codec[];
  /** Whether the whole is written at once, with scales that reach beyond a chunk. */
  readonly inOrder: boolean;

  constructor(codec: Codec, n: number, ranks: number) {
    this.n = n;
    this.ranks = ranks;
    this.codec = codec;
    this.inOrder = Object.hasOwn(fieldBits, codec.name);
    const unit = unitOf(codec);
    const units = Math.ceil(n / unit);
    this.starts = Array.from({ length: ranks + 1 }, (_, r) => Math.min(n, unit * Math.floor((r * units) / ranks)));
    this.codecs = Array.from({ length: ranks }, (_, r) => this.#codecOf(r));
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

  /** Bytes of the wire of the whole; 0 where it is never written. */
  get wholeBytes(): number {
    return this.inOrder && this.n > 0 ? this.codec.wireBytes(this.n) : 0;
  }

  /** Writes every chunk's wire. `encode` writes the elements [begin, end): of the whole, or of one chunk after the other. */
  write(wires: readonly Uint8Array[], scratch: Scratch, encode: Encode): void {
    if (this.n === 0) return;
    if (!this.inOrder) {
      for (const [r, wire] of wires.entries())
        if (wire.length > 0) encode(this.codecs[r]!, wire, this.starts[r]!, this.starts[r + 1]!);
      return;
    }
    using whole = scratch.loan(this.wholeBytes);
    encode(this.codec, whole.bytes, 0, this.n);
    for (const [r, wire] of wires.entries()) this.#cut(whole.bytes, r, wire);
  }

  /** sum += scale · what several wires of chunk r say, one after the other. */
  add(r: number, wires: readonly Uint8Array[], sum: Floats, { hold }: EncodeOptions, scale: number): void {
    const [begin, end] = [this.starts[r]!, this.starts[r + 1]!];
    if (begin === end) return;
    const held = hold && this.codec.takes.hold ? { hold: hold.subarray(begin / 8, Math.ceil(end / 8)) } : {};
    for (const wire of wires) this.codecs[r]!.decodeAdd(sum, wire, { scale, ...held });
  }

  /** into += scale · what the wire of each chunk says. */
  addAll(wires: readonly Uint8Array[], into: Floats, options: EncodeOptions, scale = 1): void {
    for (const [r, wire] of wires.entries())
      this.add(r, [wire], sliceOf(into, this.starts[r]!, this.starts[r + 1]!), options, scale);
  }

  /** What an encoding of [begin, end) is told. `stream`: a number of its own for each rank and owner keeps their draws apart. */
  call(options: EncodeOptions, stream: number, begin = 0, end = this.n): never {
    const { zero, hold, random } = this.codec.takes;
    return {
      ...(zero && { zero: options.zero ?? "plus" }),
      ...(hold && options.hold && { hold: options.hold.subarray(begin / 8, Math.ceil(end / 8)) }),
      ...(random && { seed: options.seed, step: options.step, index: stream * 64 * Math.ceil(this.n / 64) + begin }),
    } as never; // as the codec's own type would have it, which its name alone does not say
  }

  /** Chunk r's wire, of the wire of the whole. */
  #cut(whole: Uint8Array, r: number, into: Uint8Array): void {
    const [begin, end] = [this.starts[r]!, this.starts[r + 1]!];
    if (begin === end) return;
    const bits = fieldBits[this.codec.name]!(this.codec.parameters);
    const [first, count] = this.#scales(begin, end);
    const fields = whole.subarray(whole.length - Math.ceil((this.n * bits) / 8));
    into.set(whole.subarray(4 * first, 4 * (first + count)));
    into.set(fields.subarray((begin * bits) / 8, Math.ceil((end * bits) / 8)), 4 * count);
  }

  #codecOf(r: number): Codec {
    const { name, parameters } = this.codec;
    const [begin, end] = [this.starts[r]!, this.starts[r + 1]!];
    if (parameters.segments) {
      const segments = overlaps(parameters.segments, begin, end).map(({ length }) => length);
      return codecNamed(name, { ...parameters, segments });
    }
    if (name !== "top-k") return this.codec;
    // Of every chunk its share, so that all of them together keep k, or a few more.
    return codecNamed(name, { ...parameters, k: Math.max(1, Math.ceil((parameters.k! * (end - begin)) / this.n)) });
  }

  /** The scales of the regions that [begin, end) touches: the first one's place, and how many. */
  #scales(begin: number, end: number): [first: number, count: number] {
    const { name, parameters } = this.codec;
    if (!scaled.includes(name) || parameters.unscaled) return [0, 0];
    return regionsOf(this.codec, begin, end);
  }
}

/** The regions that share a scale or a unit and that [begin, end) touches: the first one's place, and how many. */
export function regionsOf(
  { parameters: { block, segments } }: Codec,
  begin: number,
  end: number,
): [first: number, count: number] {
  if (block) return [begin / block, Math.ceil((end - begin) / block)];
  if (!segments) return [0, begin === end ? 0 : 1];
  const touched = overlaps(segments, begin, end);
  return touched.length === 0 ? [0, 0] : [touched[0]!.index, touched.at(-1)!.index - touched[0]!.index + 1];
}

/** The parts of [begin, end) that lie in each segment, those of empty segments between them included. */
function overlaps(segments: readonly number[], begin: number, end: number): { index: number; length: number }[] {
  let from = 0;
  const parts: { index: number; length: number }[] = [];
  for (const [index, segment] of segments.entries()) {
    const length = Math.min(end, from + segment) - Math.max(begin, from);
    const between = segment === 0 && from > begin && from < end;
    if (length > 0 || between) parts.push({ index, length });
    from += segment;
  }
  return parts;
}

/** Chunks are multiples of this: whole bytes of fields, whole blocks, and whole draws of 64. */
function unitOf({ takes, parameters: { block = 1, dimensions = 1 } }: Codec): number {
  let unit = takes.random ? 64 : 8;
  const whole = block ** dimensions;
  while (unit % whole !== 0 && unit < 64 * whole) unit += takes.random ? 64 : 8;
  return unit;
}

/** Elements [begin, end), as a view. */
export function sliceOf(x: Floats, begin: number, end: number): Floats {
  if (x instanceof Float32Array) return x.subarray(begin, end);
  return { pointer: x.pointer + BigInt(4 * begin), length: end - begin, dtype: x.dtype, device: x.device };
}

/** What an encoding is told is looked at before anything is sent: later it would look like a value that cannot be written. */
export function checkOptions(where: string, { name, takes }: Codec, n: number, options: EncodeOptions): void {
  const { seed, step, hold } = options;
  for (const [what, value] of Object.entries(takes.random ? { seed, step } : {}))
    if (!Number.isSafeInteger(value) || value! < 0)
      throw new RangeError(
        `${where}: ${what} is ${value}, and ${name} draws: give a whole number, the same on every rank.`,
      );
  if (hold && hold.length !== Math.ceil(n / 8))
    throw new RangeError(`${where}: hold has ${hold.length} bytes, and ${n} lanes take ${Math.ceil(n / 8)}.`);
}

/** A sentence where a vector has another length than the one it goes with. */
export function checkLength(where: string, what: string, x: Floats, length: number, why: string): void {
  if (x.length === length) return;
  throw new RangeError(`${where}: ${what} has ${x.length} floats, and must have ${length}, ${why}.`);
}
