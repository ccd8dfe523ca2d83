/**
 * The indices of the elements that a sparse codec keeps: ascending, ⌈log₂ n⌉ bits each, least significant bit first,
 * padded with 0 to a whole byte. The kept floats follow.
 */

/** Bits of an index below n. */
export function indexBits(n: number): number {
  let bits = 0;
  while (2 ** bits < n) bits++;
  return bits;
}

/** Bytes of k indices below n. */
export const indexBytes = (k: number, n: number): number => Math.ceil((k * indexBits(n)) / 8);

/** The part of a sparse wire that holds the kept elements of one chunk: `k` of `length` elements, from byte `at` on. */
export interface KeptElements {
  readonly length: number;
  readonly k: number;
  readonly at: number;
}

/**
 * Divides every kept value of `wires`, which encode the same chunk, by the number of wires that keep the same element.
 * Decoded, they then add up to each element's mean over its senders. `counts` has room for `length` numbers.
 */
export function divideBySenders(
  wires: readonly Uint8Array[],
  { length, k, at }: KeptElements,
  counts: Uint16Array,
): void {
  const bits = indexBits(length);
  counts.fill(0, 0, length);
  for (const wire of wires)
    for (let j = 0; j < k; j++) {
      const i = indexAt(wire, at, j, bits);
      if (i < length) counts[i]!++;
    }
  for (const wire of wires) {
    const values = new DataView(wire.buffer, wire.byteOffset + at + indexBytes(k, length));
    for (let j = 0; j < k; j++) {
      const senders = counts[indexAt(wire, at, j, bits)] ?? 1; // a damaged index, which decoding refuses
      if (senders > 1) values.setFloat32(4 * j, values.getFloat32(4 * j, true) / senders, true);
    }
  }
}

/** The j-th of the indices that begin at byte `at`. */
function indexAt(wire: Uint8Array, at: number, j: number, bits: number): number {
  const first = j * bits;
  const begin = Math.floor(first / 8);
  let index = 0;
  for (let byte = Math.floor((first + bits - 1) / 8); byte >= begin; byte--) index = 256 * index + wire[at + byte]!;
  return Math.floor(index / 2 ** (first % 8)) % 2 ** bits;
}

/** The indices of the k elements of largest magnitude, ascending; of equal magnitudes the earlier one is kept. */
export function largest(x: Float32Array, k: number): number[] {
  const byMagnitude = [...x.keys()].sort((i, j) => Math.abs(x[j]!) - Math.abs(x[i]!) || i - j);
  return byMagnitude.slice(0, k).sort((i, j) => i - j);
}

/** Writes the indices, then x[index] for each of them. */
export function writeChosen(wire: Uint8Array, indices: readonly number[], x: Float32Array): void {
  const bits = indexBits(x.length);
  const values = indexBytes(indices.length, x.length);
  const view = new DataView(wire.buffer, wire.byteOffset, wire.length);
  wire.fill(0, 0, values);
  indices.forEach((index, j) => {
    for (let bit = 0; bit < bits; bit++) {
      const at = j * bits + bit;
      if (Math.floor(index / 2 ** bit) % 2 === 1) wire[Math.floor(at / 8)]! |= 1 << (at % 8);
    }
    view.setFloat32(values + 4 * j, x[index]!, true);
  });
}

/**
 * The kept elements as [index, value]. undefined if the indices do not ascend, one is n or more, or a value is not
 * finite.
 */
export function readChosen(wire: Uint8Array, k: number, n: number): [index: number, value: number][] | undefined {
  const bits = indexBits(n);
  const values = indexBytes(k, n);
  const view = new DataView(wire.buffer, wire.byteOffset, wire.length);
  let before = -1;
  const chosen: [number, number][] = [];
  for (let j = 0; j < k; j++) {
    let index = 0;
    for (let bit = 0; bit < bits; bit++) {
      const at = j * bits + bit;
      if ((wire[Math.floor(at / 8)]! >> (at % 8)) & 1) index += 2 ** bit;
    }
    const value = view.getFloat32(values + 4 * j, true);
    if (index <= before || index >= n || !Number.isFinite(value)) return undefined;
    chosen.push([index, value]);
    before = index;
  }
  return chosen;
}
