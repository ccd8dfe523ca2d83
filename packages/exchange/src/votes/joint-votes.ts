/** Several vectors of packed signs, laid out as one message. Each begins at a whole 64-bit word. */
import { PackedBits, Tally, Ternary } from "../packed-bits.ts";

export interface JointVotes {
  readonly bits: PackedBits;
  /** The outcome of each vector, in the order of the vectors; frees the joint memory. */
  split(result: PackedBits | Ternary | Tally): (PackedBits | Ternary | Tally)[];
}

export function joinVotes(vectors: readonly PackedBits[]): JointVotes {
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
        joint.firstNonFinite ??= vector.firstNonFinite; // only its existence matters, not the index
        joint.wire.set(vector.wire.subarray(begin - at, end - at), begin);
      }
    },
    {
      zero: vectors[0]!.zero,
      write(into, joint) {
        into.fill(-1); // pad bits stay 0
        for (const [k, vector] of vectors.entries()) {
          vector.values(into.subarray(8 * starts[k]!, 8 * starts[k]! + vector.length));
          joint.firstNonFinite ??= vector.firstNonFinite;
        }
      },
    },
  );

  /** Cuts one plane of the result into the pieces of the vectors. The first plane goes into the vectors' own memory. */
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
