import type { Vector } from "./algorithm.ts";

/** What is made once for each vector, such as a codec, of which the exchange keeps what it derives. */
export function perVector<T extends object>(make: (vector: Vector) => T): (vector: Vector) => T {
  const known = new WeakMap<Vector, T>();
  return (vector) => {
    const value = known.get(vector) ?? make(vector);
    known.set(vector, value);
    return value;
  };
}
