import { type BufferLike, checkBuffer, collectives } from "@terse/native-collectives";

/**
 * into ← from. Both have the same length and type; they may overlap. Either or both may be on a GPU, but not on two
 * GPUs: the copy then runs after the work in the device's default stream, and has ended when the call returns. Throws
 * RangeError or TypeError for arguments that cannot be right, and Error where the GPU fails.
 */
export function copy(into: BufferLike, from: BufferLike): void {
  const [to, given] = [checkBuffer("copy", "into", into), checkBuffer("copy", "from", from)];
  if (to !== given) throw new TypeError(`copy: into is ${to}, and from is ${given}; give both one type`);
  if (into.length !== from.length)
    throw new RangeError(`copy: into has ${into.length} elements, and from has ${from.length}; give both one length`);
  collectives().copy(into, from);
}
