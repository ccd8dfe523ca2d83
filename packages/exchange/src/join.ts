/** Many vectors, one message: packed signs are laid behind one another, each from a whole word. */
import type { BufferLike, NativeBuffer } from "@terse/collectives";
import { PackedBits, Tally, Ternary } from "./packed-bits.ts";

export interface Joined {
  readonly bits: PackedBits;
  /** The result's pieces, in the order of the vectors; the joint memory is given back. */
  split(result: PackedBits | Ternary | Tally): (PackedBits | Ternary | Tally)[];
}

export function join(vectors: readonly PackedBits[]): Joined {
  if (vectors.length === 1) return { bits: vectors[0]!, split: (result) => [result] };

  const starts: number[] = []; // in bytes
  let length = 0;
  for (const { wire } of vectors) {
    starts.push(length);
    length += wire.length;
  }
  const bits = new PackedBits(
    8 * length,
    undefined,
    (joint, from, to) => {
      for (const [k, vector] of vectors.entries()) {
        const at = starts[k]!;
        const [begin, end] = [Math.max(from / 8, at), Math.min(to / 8, at + vector.wire.length)];
        if (begin >= end) continue;
        vector.fill(8 * (end - at));
        joint.firstNonFinite ??= vector.firstNonFinite; // all that is asked is whether there is one
        joint.wire.set(vector.wire.subarray(begin - at, end - at), begin);
      }
    },
    {
      zero: vectors[0]!.zero,
      write(into, joint) {
        into.fill(-1); // pads stay 0 bits
        for (const [k, vector] of vectors.entries()) {
          vector.values(into.subarray(8 * starts[k]!, 8 * starts[k]! + vector.length));
          joint.firstNonFinite ??= vector.firstNonFinite;
        }
      },
    },
  );

  /** One plane of the result, cut; the vectors' own memory is used again for the first plane. */
  const cut = (plane: PackedBits, into: readonly PackedBits[]): readonly PackedBits[] => {
    let from = 0;
    for (const piece of into) {
      piece.wire.set(plane.wire.subarray(from, from + piece.wire.length));
      from += piece.wire.length;
    }
    plane[Symbol.dispose]();
    return into;
  };
  const fresh = () => vectors.map((vector) => new PackedBits(vector.length));

  return {
    bits,
    split(result) {
      if (result instanceof PackedBits) return [...cut(result, vectors)];
      if (result instanceof Ternary) {
        const plus = cut(result.plus, vectors);
        const nonzero = cut(result.nonzero, fresh());
        return plus.map((piece, i) => new Ternary(piece, nonzero[i]!));
      }
      const planes = result.planes.map((plane, k) => cut(plane, k === 0 ? vectors : fresh()));
      return vectors.map(
        (_, i) =>
          new Tally(
            planes.map((pieces) => pieces[i]!),
            result.ranks,
          ),
      );
    },
  };
}

/**
 * Vectors that lie behind one another in one memory become one, so that they are one message: views of one buffer, or of
 * `region`. What merely happens to touch does not, because on another rank it might not.
 */
export function adjacent(vectors: readonly BufferLike[], region?: NativeBuffer): BufferLike[] {
  const merged: BufferLike[] = [];
  for (const vector of vectors) {
    const last = merged.at(-1);
    const both = last && touching(last, vector, region);
    if (both) merged[merged.length - 1] = both;
    else merged.push(vector);
  }
  return merged;
}

function touching(a: BufferLike, b: BufferLike, region?: NativeBuffer): BufferLike | undefined {
  if (a instanceof Float32Array && b instanceof Float32Array) {
    if (a.buffer !== b.buffer || a.byteOffset + a.byteLength !== b.byteOffset) return undefined;
    return new Float32Array(a.buffer, a.byteOffset, a.length + b.length);
  }
  if (!region || !isPointer(a) || !isPointer(b) || !within(a, region) || !within(b, region)) return undefined;
  if (a.pointer + BigInt(4 * a.length) !== b.pointer) return undefined;
  return { pointer: a.pointer, length: a.length + b.length, dtype: a.dtype, device: a.device };
}

function within(x: NativeBuffer, region: NativeBuffer): boolean {
  const end = (memory: NativeBuffer) => memory.pointer + BigInt(4 * memory.length);
  return x.dtype === "f32" && region.dtype === "f32" && x.pointer >= region.pointer && end(x) <= end(region);
}

function isPointer(memory: BufferLike): memory is NativeBuffer {
  return "pointer" in memory;
}
