import type { Vector } from "./algorithm.ts";

/** Makes a value once for each vector, such as a codec, for which the exchange keeps derived values. */
export function perVector<T extends object>(make: (vector: Vector) => T): (vector: Vector) => T {
  const known = new WeakMap<Vector, T>();
  return (vector) => {
    const value = known.get(vector) ?? make(vector);
    known.set(vector, value);
    return value;
  };
}
