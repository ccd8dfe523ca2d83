/** Checks of one rank's arguments, before anything is sent. */
import { type BufferLike, checkBuffer, type DType, elementBytes } from "@terse/native-collectives";
import { show } from "@terse/options";
import type { Reduction } from "./group.ts";

/** Checks the memory of an operation that is under way after the call has returned. Returns its dtype. */
function checkOperand(call: string, what: string, x: BufferLike): DType {
  const dtype = checkBuffer(call, what, x);
  if (ArrayBuffer.isView(x) && x.buffer instanceof ArrayBuffer && x.buffer.resizable)
    throw new TypeError(
      `${call}: ${what} is in an ArrayBuffer that can be resized, so it could shrink while the operation is under way; give an array in a buffer without maxByteLength`,
    );
  return dtype;
}

/** All of an operation's memory is on the CPU, or all on the group's device. */
export function checkDevice(memories: readonly BufferLike[], device: string | undefined, call: string): void {
  const devices = memories.map((x) => (ArrayBuffer.isView(x) ? "cpu" : x.device));
  for (const each of devices) {
    if (each === "cpu" || each === device) continue;
    const takes = device === undefined ? "this engine takes memory of the CPU" : `this rank's group is on ${device}`;
    throw new TypeError(`${call}: the memory is on ${each}, and ${takes}`);
  }
  const other = devices.find((each) => each !== devices[0]);
  if (other !== undefined)
    throw new TypeError(`${call}: some memory is on ${devices[0]} and some on ${other}; give all of it on one`);
}

export function checkSignal(signal: unknown, call: string): void {
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new TypeError(`${call}: signal must be an AbortSignal, such as that of \`new AbortController()\``);
}

export function checkPacked(x: BufferLike, op: Reduction, call: string): void {
  if (op !== "sum" || checkOperand(call, "the buffer", x) !== "u8")
    throw new TypeError(`${call}: only a sum of u8 can be packed; leave \`packed\` out`);
  if (!ArrayBuffer.isView(x) && x.device !== "cpu" && x.pointer % 8n !== 0n)
    throw new RangeError(`${call}: packed memory must begin at a multiple of 8 bytes, and this begins at ${x.pointer}`);
}

export function checkEven(outgoing: readonly BufferLike[], incoming: readonly BufferLike[], call: string): void {
  const { length } = outgoing[0]!;
  const odd = [...outgoing, ...incoming].find((part) => part.length !== length);
  if (odd)
    throw new RangeError(
      `${call}: parts of an even all-to-all must have one length, and these have ${length} and ${odd.length}`,
    );
}

export function checkMemory(x: BufferLike, call: string): void {
  checkOperand(call, "the buffer", x);
}

export function checkParts(parts: readonly BufferLike[], ranks: number, call: string, what = "parts"): void {
  if (!Array.isArray(parts))
    throw new TypeError(`${call}: ${what} must be an array with one buffer per rank, so ${ranks} of them`);
  if (parts.length !== ranks)
    throw new RangeError(`${call}: ${what} must have one entry per rank, so ${ranks}, and has ${parts.length}`);
  const types = parts.map((part, r) => checkOperand(call, `${what}[${r}]`, part));
  const other = types.findIndex((type) => type !== types[0]);
  if (other >= 0)
    throw new TypeError(
      `${call}: ${what}[0] is ${types[0]} and ${what}[${other}] is ${types[other]}; give all of them one type`,
    );
}

/** The memory of one part: bytes [begin, end) of a buffer, or of a device. */
interface Span {
  readonly name: string;
  readonly space: unknown;
  readonly begin: number;
  readonly end: number;
  readonly written: boolean;
}

function spanOf(name: string, x: BufferLike, written: boolean): Span {
  const [space, begin] = ArrayBuffer.isView(x) ? [x.buffer, x.byteOffset] : [x.device, Number(x.pointer)];
  const bytes = ArrayBuffer.isView(x) ? x.byteLength : x.length * elementBytes[x.dtype];
  return { name, space, begin, end: begin + bytes, written };
}

/**
 * Refuses memory that an operation writes and that is also another argument's: it would change before it is read, and
 * the ranks would have other results, without an error.
 */
function refuseShared(call: string, spans: readonly Span[]): void {
  const spaces = Map.groupBy(
    spans.filter(({ begin, end }) => begin < end),
    ({ space }) => space,
  );
  for (const inSpace of spaces.values()) {
    let [last, lastWritten]: (Span | undefined)[] = []; // those that end last
    for (const span of inSpace.sort((a, b) => a.begin - b.begin)) {
      const other = span.written ? last : lastWritten;
      if (other && other.end > span.begin)
        throw new RangeError(`${call}: ${other.name} and ${span.name} share memory; give each its own`);
      if (!last || span.end > last.end) last = span;
      if (span.written && (!lastWritten || span.end > lastWritten.end)) lastWritten = span;
    }
  }
}

/** Parts that an operation may write. */
export function checkApart(parts: readonly BufferLike[], call: string): void {
  refuseShared(call, spansOf("parts", parts, true));
}

/** Memory that is read, and memory that is written. What this rank keeps may be in its place already. */
function checkReadAndWritten(
  call: string,
  { read, written, kept }: { read: readonly Span[]; written: readonly Span[]; kept: readonly [from: Span, to: Span] },
): void {
  const [from, to] = kept;
  const inPlace = from.space === to.space && from.begin === to.begin && from.end === to.end;
  // What this rank keeps is copied to its own place: that changes nothing, and nothing else may be written there.
  const all = [...read, ...written].filter((span) => !(inPlace && (span === from || span === to)));
  refuseShared(call, inPlace ? [{ ...to, written: false }, ...all] : all);
}

const spansOf = (name: string, list: readonly BufferLike[], written: boolean): Span[] =>
  list.map((part, r) => spanOf(`${name}[${r}]`, part, written));

export function checkAllToAll(outgoing: readonly BufferLike[], incoming: readonly BufferLike[], rank: number): void {
  const [mine, here] = [outgoing[rank]!, incoming[rank]!];
  const [sent, received] = [checkOperand("allToAll", "outgoing", mine), checkOperand("allToAll", "incoming", here)];
  if (sent !== received)
    throw new TypeError(`allToAll: outgoing is ${sent} and incoming is ${received}; give both one type`);
  if (mine.length !== here.length)
    throw new RangeError(
      `allToAll: the part that rank ${rank} keeps has ${mine.length} elements in outgoing and ${here.length} in incoming; give both one length`,
    );
  const [read, written] = [spansOf("outgoing", outgoing, false), spansOf("incoming", incoming, true)];
  checkReadAndWritten("allToAll", { read, written, kept: [read[rank]!, written[rank]!] });
}

/** Checks a gather or scatter. The root gives the parts; those of the other ranks are ignored. */
export function checkRooted(
  x: BufferLike,
  root: number,
  parts: readonly BufferLike[] | undefined,
  { rank, size }: { rank: number; size: number },
  call: string,
): void {
  const dtype = checkOperand(call, "the buffer", x);
  checkRank(root, size, call);
  if (rank !== root) return;
  if (!parts) throw new TypeError(`${call}: rank ${root} is the root and must give parts, one per rank`);
  checkParts(parts, size, call);
  const own = parts[root]!;
  const theirs = checkOperand(call, "parts", own);
  if (theirs !== dtype)
    throw new TypeError(`${call}: the memory is ${dtype} and the parts are ${theirs}; give both one type`);
  if (own.length !== x.length)
    throw new RangeError(
      `${call}: the root's memory has ${x.length} elements, and parts[${root}], its own, has ${own.length}; give both one length`,
    );
  const toRoot = call === "gather";
  const [mine, all] = [spanOf("the buffer", x, !toRoot), spansOf("parts", parts, toRoot)];
  if (toRoot) checkReadAndWritten(call, { read: [mine], written: all, kept: [mine, all[root]!] });
  else checkReadAndWritten(call, { read: all, written: [mine], kept: [all[root]!, mine] });
}

export function checkNote(note: number): void {
  if (!Number.isInteger(note) || note < 0 || note > 127)
    throw new RangeError(`allToAll: a note is a whole number from 0 to 127, and is ${show(note)}`);
}

export function checkReduction(x: BufferLike, op: Reduction, call: string): void {
  if (!["sum", "prod", "min", "max", "mean"].includes(op))
    throw new TypeError(`${call}: no reduction is called ${op}; there are sum, prod, min, max and mean`);
  const dtype = checkOperand(call, "the buffer", x);
  if (op === "mean" && !["f16", "bf16", "f32", "f64"].includes(dtype))
    throw new TypeError(`${call}: ${dtype} has no exact mean; ask for the sum, or give floats`);
  if (dtype === "bool") throw new TypeError(`${call}: bool has no ${op}; reduce a u8 view of it`);
  // Unsigned integers are reduced as signed ones. Sums and products are the same, the order is not.
  const unsigned = x instanceof Uint16Array || x instanceof Uint32Array || x instanceof BigUint64Array;
  if (unsigned && (op === "min" || op === "max"))
    throw new TypeError(`${call}: ${op} of a ${x.constructor.name} is not supported; use a signed or a Uint8Array`);
}

export function checkRank(peer: number, ranks: number, call: string, self?: number): void {
  if (!Number.isInteger(peer) || peer < 0 || peer >= ranks)
    throw new RangeError(`${call}: there is no rank ${show(peer)} among ${ranks}; give one from 0 to ${ranks - 1}`);
  if (peer === self) throw new RangeError(`${call}: rank ${self} cannot exchange with itself; name another rank`);
}
