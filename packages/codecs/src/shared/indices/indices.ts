/**
 * The indices of the k elements that a sparse codec keeps of n, ascending, least significant bit first, padded with 0
 * to a whole byte.
 *
 *   fixed        ⌈log₂ n⌉ bits each
 *   elias-fano   l = ⌊log₂(n/k)⌋ low bits each, then k + ⌊n/2^l⌋ marks: of the j-th index i, bit ⌊i/2^l⌋ + j is 1. The
 *                number of zeros before the j-th 1 is the rest of its index, in unary. Elias 1974, "Efficient Storage
 *                and Retrieval by Content and Address of Static Files", https://doi.org/10.1145/321812.321820; Fano
 *                1971, "On the Number of Bits Required to Implement an Associative Memory"
 *                or n marks, where these are fewer bits: of index i, bit i is 1
 */

/** How indices are written. */
export type Indices = (typeof indexCodings)[number];
/** In the order of their numbers in a frame. */
export const indexCodings = ["fixed", "elias-fano"] as const;

/** Where the bits of k indices below n are. */
interface IndexLayout {
  /** Low bits of each index, side by side at the beginning. */
  readonly low: number;
  /** Whether marks follow, the number of them, and how many places each mark moves up for each one before it. */
  readonly marks: number;
  readonly step: 0 | 1;
}

/** Bits of an index below n. */
export function indexBits(n: number): number {
  let bits = 0;
  while (2 ** bits < n) bits++;
  return bits;
}

function layoutOf(k: number, n: number, indices: Indices = "fixed"): IndexLayout {
  if (indices === "fixed") return { low: indexBits(n), marks: 0, step: 0 };
  let low = 0;
  while (k * 2 ** (low + 1) <= n) low++;
  const marks = k + Math.floor(n / 2 ** low);
  return n < k * low + marks ? { low: 0, marks: n, step: 0 } : { low, marks, step: 1 };
}

/** Bytes of k indices below n. */
export function indexBytes(k: number, n: number, indices?: Indices): number {
  const { low, marks } = layoutOf(k, n, indices);
  return Math.ceil((k * low + marks) / 8);
}

/** Writes ascending indices below n to the first bytes of the wire. */
export function writeIndices(wire: Uint8Array, chosen: readonly number[], n: number, indices?: Indices): void {
  const { low, marks, step } = layoutOf(chosen.length, n, indices);
  wire.fill(0, 0, indexBytes(chosen.length, n, indices));
  const set = (bit: number) => {
    wire[Math.floor(bit / 8)]! |= 1 << (bit % 8);
  };
  chosen.forEach((index, j) => {
    for (let bit = 0; bit < low; bit++) if (Math.floor(index / 2 ** bit) % 2 === 1) set(j * low + bit);
    if (marks > 0) set(chosen.length * low + Math.floor(index / 2 ** low) + step * j);
  });
}

/**
 * The indices. undefined if no encoder writes them: they do not ascend below n, or other than k bits are marks, or bits
 * behind the marks are not 0.
 */
export function readIndices(wire: Uint8Array, k: number, n: number, indices?: Indices): number[] | undefined {
  const { low, marks, step } = layoutOf(k, n, indices);
  const marked = marks > 0 ? markedIn(wire, k * low, 8 * indexBytes(k, n, indices)) : undefined;
  if (marked && (marked.length !== k || marked.at(-1)! >= marks)) return undefined;
  const chosen = Array.from({ length: k }, (_, j) => {
    const high = marked ? marked[j]! - step * j : 0;
    return high * 2 ** low + numberAt(wire, j * low, low);
  });
  return chosen.every((index, j) => index < n && (j === 0 || index > chosen[j - 1]!)) ? chosen : undefined;
}

/** The places of the bits of [begin, end) that are 1, counted from `begin`. */
function markedIn(wire: Uint8Array, begin: number, end: number): number[] {
  const marked: number[] = [];
  for (let byte = Math.floor(begin / 8); byte < Math.ceil(end / 8); byte++)
    for (let bit = 0; bit < 8; bit++) {
      const place = 8 * byte + bit - begin;
      if (place >= 0 && (wire[byte]! >> bit) & 1) marked.push(place);
    }
  return marked;
}

/** The number in `width` bits from `bit` on. */
function numberAt(wire: Uint8Array, bit: number, width: number): number {
  const begin = Math.floor(bit / 8);
  let number = 0;
  for (let byte = Math.ceil((bit + width) / 8) - 1; byte >= begin; byte--) number = 256 * number + wire[byte]!;
  return Math.floor(number / 2 ** (bit % 8)) % 2 ** width;
}

/** The part of a sparse wire that holds the kept elements of one chunk: `k` of `length` elements, from byte `at` on. */
export interface KeptElements {
  readonly length: number;
  readonly k: number;
  readonly at: number;
  /** "fixed" unless given. */
  readonly indices?: Indices | undefined;
  /** How their values are written: "f32" unless given. */
  readonly values?: string | undefined;
}

/**
 * Divides every kept value of `wires`, which encode the same chunk, by the number of wires that keep the same element.
 * Decoded, they then add up to each element's mean over its senders. `counts` has room for `length` numbers. The values
 * are fp32, behind the indices. A wire that no encoder writes stays as it is, and decoding refuses it.
 */
export function divideBySenders(
  wires: readonly Uint8Array[],
  { length, k, at, indices }: KeptElements,
  counts: Uint16Array,
): void {
  const chosen = wires.map((wire) => readIndices(wire.subarray(at), k, length, indices) ?? []);
  counts.fill(0, 0, length);
  for (const one of chosen) for (const i of one) counts[i]!++;
  const values = at + indexBytes(k, length, indices);
  for (const [w, wire] of wires.entries()) {
    const view = new DataView(wire.buffer, wire.byteOffset + values);
    for (const [j, i] of chosen[w]!.entries())
      if (counts[i]! > 1) view.setFloat32(4 * j, view.getFloat32(4 * j, true) / counts[i]!, true);
  }
}

/** The indices of the k elements of largest magnitude, ascending; of equal magnitudes the earlier one is kept. */
export function largest(x: Float32Array, k: number): number[] {
  const byMagnitude = [...x.keys()].sort((i, j) => Math.abs(x[j]!) - Math.abs(x[i]!) || i - j);
  return byMagnitude.slice(0, k).sort((i, j) => i - j);
}

/** Writes the indices, then x[index] for each of them. */
export function writeChosen(wire: Uint8Array, chosen: readonly number[], x: Float32Array): void {
  writeIndices(wire, chosen, x.length);
  const view = new DataView(wire.buffer, wire.byteOffset + indexBytes(chosen.length, x.length));
  chosen.forEach((index, j) => {
    view.setFloat32(4 * j, x[index]!, true);
  });
}

/**
 * The kept elements as [index, value]. undefined if the indices do not ascend, one is n or more, or a value is not
 * finite.
 */
export function readChosen(wire: Uint8Array, k: number, n: number): [index: number, value: number][] | undefined {
  const view = new DataView(wire.buffer, wire.byteOffset + indexBytes(k, n));
  const chosen = readIndices(wire, k, n)?.map((index, j): [number, number] => [index, view.getFloat32(4 * j, true)]);
  return chosen?.every(([, value]) => Number.isFinite(value)) ? chosen : undefined;
}
