import { type BufferLike, collectives } from "@terse/native-collectives";

/**
 * into ← (1/P) Σ parts, for P ≥ 1 arrays of f32 on the CPU that are as long as `into`, which may be one of them. They
 * are added in fp64 in their order, and rounded once. Returns the index of the first element that is not finite, or
 * into.length if there is none. Throws TypeError or RangeError for other arrays.
 */
export function average(into: BufferLike, parts: readonly BufferLike[]): number {
  return collectives().average(into, parts);
}
