import type { Floats } from "@terse/codecs";
import type { BufferLike } from "@terse/collectives";

/** The vector as a codec takes it. TypeError if it is not f32. */
export function floatsOf(x: BufferLike): Floats {
  if (x instanceof Float32Array || ("pointer" in x && x.dtype === "f32")) return x;
  throw new TypeError(
    "mean: a mean that is sent in 8 or 16 bits (exchange.dense in a recipe) takes vectors of f32; send it in f32",
  );
}
