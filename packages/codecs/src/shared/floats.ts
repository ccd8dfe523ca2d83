import type { Floats } from "@terse/native-codecs";

/** Floats as the TypeScript definitions read them: no pointers, and fewer than 2³¹, because they shift indices. */
export function floats(x: Floats): Float32Array {
  if (!(x instanceof Float32Array))
    throw new TypeError(
      "the TypeScript implementation reads Float32Array only, not memory behind a pointer: build the native addon with `./terse setup`, or copy to a Float32Array.",
    );
  if (x.length >= 2 ** 31)
    throw new RangeError(
      `the TypeScript implementation takes at most ${2 ** 31 - 1} floats, got ${x.length}: build the native addon with \`./terse setup\`, or encode parts.`,
    );
  return x;
}
