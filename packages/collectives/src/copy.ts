import { type BufferLike, collectives } from "@terse/native-collectives";
import { checkParts } from "./arguments.ts";

/** into ← from: as many elements of the same type, of a typed array or of anything with a pointer. They may overlap. */
export function copy(into: BufferLike, from: BufferLike): void {
  checkParts([into, from], 2, "copy", "memory");
  if (into.length !== from.length)
    throw new RangeError(`copy: into has ${into.length} elements, and from has ${from.length}`);
  collectives().copy(into, from);
}
