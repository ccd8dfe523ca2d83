/**
 * Frames: a wire with its codec, length and parameters, for files and for receivers that do not know them.
 * Little-endian; the picture is in docs/wire-formats.md.
 *
 *   "TERS"  version  codec's name  n  parameters  segment ends  the wire  CRC-32C of everything before
 *
 * `native/codecs/frame.c` writes the same bytes and refuses the same ones, in the same order.
 */
import type { Parameters } from "@terse/native-codecs";
import { checkBytes } from "./arguments.ts";
import type { Codec } from "./codec.ts";
import { kindsOfLevels } from "./codecs/linf/linf.ts";
import { valueCodings } from "./codecs/top-k/kept-values.ts";
import { codecNamed, codecs } from "./codecs.ts";
import { crc32c } from "./crc32c.ts";
import { indexCodings } from "./shared/indices/indices.ts";

/** The contents of a frame. */
export interface Frame {
  /** With its parameters; `codec.decodeAdd(sum, wire)` adds n floats. */
  readonly codec: Codec;
  /** Floats. A frame of a sparse codec may describe many floats in few bytes: check n before allocating. */
  readonly n: number;
  /** A view of the frame's bytes. */
  readonly wire: Uint8Array;
  /** Bytes of the whole frame; later bytes were not read. */
  readonly bytes: number;
}

/** Why bytes are refused, in the order of the checks. */
export type BadFrame =
  | "not a frame"
  | "another version"
  | "cut short"
  | "damaged"
  | "bad header"
  | "unknown codec"
  | "refused parameters"
  | "wrong length";

/** The bytes are no frame, or one that this library does not read. */
export class BadFrameError extends RangeError {
  override name = "BadFrameError";
  readonly reason: BadFrame;

  constructor(reason: BadFrame, why: string) {
    super(`readFrame: ${why}`);
    this.reason = reason;
  }
}

const magic = [0x54, 0x45, 0x52, 0x53]; // "TERS"
const version = 1;
const at = {
  version: 4,
  name: 8,
  n: 24,
  bits: 32,
  side: 34,
  width: 36,
  ranks: 40,
  unscaled: 44,
  indices: 46,
  values: 47,
  levels: 48,
  dimensions: 52,
  block: 56,
  k: 64,
  clip: 72,
  segmentCount: 76,
  wireBytes: 80,
  segments: 88,
} as const;
const checksumBytes = 4;
/** The parameters that are words. A header has the place of the word; 0, the first one, is the default. */
const words = { levels: kindsOfLevels, indices: indexCodings, values: valueCodings } as const;
/** The longest vector, and so the most that any count of its elements can be. */
const most = 2 ** 48;
const infinityBits = 0x7f80_0000;

/** A frame around `wire`, which `codec` wrote from n floats. It does not contain the mask of held elements. */
export function writeFrame(codec: Codec, wire: Uint8Array, n: number): Uint8Array {
  const where = "writeFrame";
  if (!Object.hasOwn(codecs, codec?.name))
    throw new RangeError(
      `${where}: no reader knows a codec "${codec?.name}"; frames are for ${Object.keys(codecs).join(", ")}.`,
    );
  if (!isCount(n)) throw new RangeError(`${where}: n is ${String(n)}, and must be a whole number, 0 to 2^48.`);
  checkBytes(where, "wire", wire, codec.wireBytes(n), `${n} floats`);
  for (const what of ["block", "k"] as const) {
    const value = codec.parameters[what] ?? 0;
    if (!isCount(value)) throw new RangeError(`${where}: ${what} is ${value}, and a frame has room for at most 2^48.`);
  }
  const header = headerOf(codec, n, wire.length);
  const end = header.length + wire.length;
  const frame = new Uint8Array(end + checksumBytes);
  frame.set(header);
  frame.set(wire, header.length);
  new DataView(frame.buffer).setUint32(end, crc32c(frame.subarray(0, end)), true);
  return frame;
}

/** Everything before the wire. */
function headerOf({ name, parameters }: Codec, n: number, wireBytes: number): Uint8Array {
  const segments = parameters.segments ?? [];
  const header = new Uint8Array(at.segments + 8 * segments.length);
  const view = new DataView(header.buffer);
  header.set(magic);
  view.setUint32(at.version, version, true);
  for (let i = 0; i < name.length; i++) header[at.name + i] = name.charCodeAt(i);
  setUint64(view, at.n, n);
  for (const what of ["bits", "side"] as const) view.setUint16(at[what], parameters[what] ?? 0, true);
  for (const what of ["width", "dimensions"] as const) view.setUint32(at[what], parameters[what] ?? 0, true);
  view.setUint32(at.ranks, parameters.ranks === 1 ? 0 : (parameters.ranks ?? 0), true); // one meaning, one frame
  view.setUint16(at.unscaled, parameters.unscaled ? 1 : 0, true);
  view.setUint8(at.indices, words.indices.indexOf(parameters.indices ?? words.indices[0]));
  view.setUint8(at.values, words.values.indexOf(parameters.values ?? words.values[0]));
  view.setUint32(at.levels, words.levels.indexOf(parameters.levels ?? words.levels[0]), true);
  setUint64(view, at.block, parameters.block ?? 0);
  setUint64(view, at.k, parameters.k ?? 0);
  view.setFloat32(at.clip, parameters.clip || 0, true); // −0 is no clipping either
  view.setUint32(at.segmentCount, segments.length, true);
  setUint64(view, at.wireBytes, wireBytes);
  let end = 0;
  segments.forEach((length, s) => {
    end += length;
    setUint64(view, at.segments + 8 * s, end);
  });
  return header;
}

/** The frame at the beginning of `bytes`. Any bytes may be given; BadFrameError if they are refused. */
export function readFrame(bytes: Uint8Array): Frame {
  if (!(bytes instanceof Uint8Array)) throw new TypeError("readFrame: bytes must be a Uint8Array.");
  const cutShort = (needed: string): never =>
    refuse("cut short", `the frame is cut short: it has ${needed}, and there are ${bytes.length} bytes.`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

  if (bytes.length < magic.length || magic.some((byte, i) => bytes[i] !== byte))
    refuse("not a frame", 'these bytes are not a frame: they do not begin with "TERS".');
  if (bytes.length < at.name) cutShort("a version");
  const itsVersion = view.getUint32(at.version, true);
  if (itsVersion !== version)
    refuse("another version", `the frame is of version ${itsVersion}, and this library reads ${version}.`);
  if (bytes.length < at.segments + checksumBytes) cutShort(`a header and a checksum of ${at.segments + checksumBytes}`);

  // Doubles are exact up to 2^53; larger numbers are too large in any case.
  let left = bytes.length - at.segments - checksumBytes;
  const segmentCount = view.getUint32(at.segmentCount, true);
  if (segmentCount > Math.floor(left / 8)) cutShort(`${segmentCount} segments`);
  left -= 8 * segmentCount;
  const wireBytes = getUint64(view, at.wireBytes);
  if (wireBytes > left) cutShort(`a wire of ${wireBytes}`);
  const wireAt = at.segments + 8 * segmentCount;
  const end = wireAt + wireBytes;
  if (view.getUint32(end, true) !== crc32c(bytes.subarray(0, end)))
    refuse("damaged", "the frame is damaged: its checksum is not that of its bytes.");

  const badHeader = (what: string): never =>
    refuse("bad header", `the frame's checksum is right, and its header says what no writer writes: ${what}.`);
  const name = readName(bytes) ?? badHeader("no name of a codec");
  const count = (what: "n" | "block" | "k"): number => {
    const value = getUint64(view, at[what]);
    return value <= most ? value : badHeader(`${what} is beyond 2^48`);
  };
  const [n, block, k] = [count("n"), count("block"), count("k")];
  const [bits, side] = [view.getUint16(at.bits, true), view.getUint16(at.side, true)];
  const [width, ranks, levels, dimensions, clipBits] = (
    ["width", "ranks", "levels", "dimensions", "clip"] as const
  ).map((what) => view.getUint32(at[what], true)) as [number, number, number, number, number];
  const unscaled = view.getUint16(at.unscaled, true);
  const [indices, values] = [view.getUint8(at.indices), view.getUint8(at.values)];
  if (ranks === 1) badHeader("ranks is 1, which is written as 0");
  if (unscaled > 1) badHeader(`unscaled is ${unscaled}`);
  if (levels >= words.levels.length) badHeader(`levels is ${levels}`);
  if (indices >= words.indices.length) badHeader(`indices is ${indices}`);
  if (values >= words.values.length) badHeader(`values is ${values}`);
  if (clipBits >= infinityBits) badHeader("clip is negative or not finite");
  if (!Object.hasOwn(codecs, name)) refuse("unknown codec", `there is no codec ${JSON.stringify(name)}.`);

  const parameters: Parameters = {
    ...(bits && { bits }),
    ...(side && { side }),
    ...(width && { width }),
    ...(ranks && { ranks }),
    ...(unscaled && { unscaled: true }),
    ...(levels && { levels: words.levels[levels] }),
    ...(dimensions && { dimensions }),
    ...(block && { block }),
    ...(k && { k }),
    ...(indices && { indices: words.indices[indices] }),
    ...(values && { values: words.values[values] }),
    ...(clipBits && { clip: view.getFloat32(at.clip, true) }),
    ...(segmentCount && { segments: readSegments(view, segmentCount, n) }),
  };
  const refused = (error: unknown): never =>
    refuse(
      "refused parameters",
      `${name} refuses the frame's parameters: ${error instanceof Error ? error.message : String(error)}`,
    );
  let codec: Codec;
  let expected: number;
  try {
    codec = codecNamed(name, parameters);
    expected = codec.wireBytes(n);
  } catch (error) {
    return refused(error);
  }
  // A factory that overlooked a parameter, or chose one that was left out, would read the wire as another codec's.
  const header = headerOf(codec, n, wireBytes);
  if (header.length !== wireAt || header.some((byte, i) => byte !== bytes[i]))
    refused(`they are not what ${JSON.stringify(codec.parameters)} is written as.`);
  if (expected !== wireBytes)
    refuse("wrong length", `the wire has ${wireBytes} bytes, and ${n} floats of ${name} take ${expected}.`);
  return { codec, n, wire: bytes.subarray(wireAt, end), bytes: end + checksumBytes };
}

/** At least one letter, and nothing but zeros from the first zero on. */
function readName(bytes: Uint8Array): string | undefined {
  const field = bytes.subarray(at.name, at.n);
  const letters = field.indexOf(0);
  if (letters <= 0 || field.subarray(letters).some((byte) => byte !== 0)) return undefined;
  return String.fromCharCode(...field.subarray(0, letters));
}

/** Ends as lengths. */
function readSegments(view: DataView, count: number, n: number): number[] {
  let begin = 0;
  const lengths = Array.from({ length: count }, (_, s) => {
    const end = getUint64(view, at.segments + 8 * s);
    if (end < begin || end > n)
      refuse("refused parameters", `segment ${s} ends at ${end}, before it begins or behind the ${n} floats.`);
    const length = end - begin;
    begin = end;
    return length;
  });
  if (begin !== n) refuse("refused parameters", `the segments end at ${begin}, and there are ${n} floats.`);
  return lengths;
}

function refuse(reason: BadFrame, why: string): never {
  throw new BadFrameError(reason, why);
}

const isCount = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= most;

function setUint64(view: DataView, offset: number, value: number): void {
  view.setUint32(offset, value >>> 0, true);
  view.setUint32(offset + 4, Math.floor(value / 2 ** 32), true);
}

const getUint64 = (view: DataView, offset: number): number =>
  view.getUint32(offset, true) + 2 ** 32 * view.getUint32(offset + 4, true);
