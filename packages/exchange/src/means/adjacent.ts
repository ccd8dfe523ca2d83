import type { BufferLike, NativeBuffer } from "@terse/collectives";

/**
 * Joins vectors that are neighbours in the same memory: in one ArrayBuffer, or in `memory`. Other vectors stay separate
 * even if they happen to be neighbours, because on another rank they may not be.
 */
export function adjacent(vectors: readonly BufferLike[], memory?: NativeBuffer): BufferLike[] {
  const merged: BufferLike[] = [];
  for (const vector of vectors) {
    const last = merged.at(-1);
    const both = last && joined(last, vector, memory);
    if (both) merged[merged.length - 1] = both;
    else merged.push(vector);
  }
  return merged;
}

function joined(a: BufferLike, b: BufferLike, memory?: NativeBuffer): BufferLike | undefined {
  if (a instanceof Float32Array && b instanceof Float32Array) {
    if (a.buffer !== b.buffer || a.byteOffset + a.byteLength !== b.byteOffset) return undefined;
    return new Float32Array(a.buffer, a.byteOffset, a.length + b.length);
  }
  if (!memory || !isPointer(a) || !isPointer(b) || !within(a, memory) || !within(b, memory)) return undefined;
  if (a.pointer + BigInt(4 * a.length) !== b.pointer) return undefined;
  return { pointer: a.pointer, length: a.length + b.length, dtype: a.dtype, device: a.device };
}

function within(x: NativeBuffer, memory: NativeBuffer): boolean {
  const end = (of: NativeBuffer) => of.pointer + BigInt(4 * of.length);
  return x.dtype === "f32" && memory.dtype === "f32" && x.pointer >= memory.pointer && end(x) <= end(memory);
}

function isPointer(x: BufferLike): x is NativeBuffer {
  return "pointer" in x;
}
