import type { Floats } from "@terse/codecs";
import type { BufferLike } from "@terse/collectives";

/** A vector that is to be encoded, as the codecs take it. TypeError where it is not f32. */
export function floatsOf(x: BufferLike): Floats {
  if (x instanceof Float32Array || ("pointer" in x && x.dtype === "f32")) return x;
  throw new TypeError("a mean that travels in 8 or 16 bits takes a vector of f32");
}
