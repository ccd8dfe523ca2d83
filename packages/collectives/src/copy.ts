import { type BufferLike, collectives } from "@terse/native-collectives";
import { checkParts } from "./arguments.ts";

/** into ← from. Both have the same length and type; they may overlap. Throws RangeError or TypeError otherwise. */
export function copy(into: BufferLike, from: BufferLike): void {
  checkParts([into, from], 2, "copy", "memory");
  if (into.length !== from.length)
    throw new RangeError(`copy: into has ${into.length} elements, and from has ${from.length}`);
  collectives().copy(into, from);
}
