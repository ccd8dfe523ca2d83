/** Wires that are vectors of f32. They are carried by themselves, so each begins at a multiple of four bytes. */
import { type Floats, NotFiniteError } from "@terse/codecs";
import { copy } from "@terse/collectives";

export const floatsAt = (wire: Uint8Array): Float32Array =>
  new Float32Array(wire.buffer, wire.byteOffset, wire.byteLength / 4);

/** wire ← x. Throws NotFiniteError, which refuses the step. */
export function writeFloats(where: string, wire: Uint8Array, x: Floats): void {
  if (wire.length === 0) return;
  copy(floatsAt(wire), x);
  checkFinite(where, floatsAt(wire));
}

/** mean ← (1/P) Σ wires, in their order, added in fp64 and rounded once. */
export function averageFloats(mean: Float32Array, wires: readonly Uint8Array[]): void {
  const vectors = wires.map(floatsAt);
  for (let i = 0; i < mean.length; i++) {
    let sum = 0;
    for (const x of vectors) sum += x[i]!;
    mean[i] = sum / vectors.length;
  }
}

export function checkFinite(where: string, x: Float32Array): void {
  for (let i = 0; i < x.length; i++) if (x[i]! - x[i]! !== 0) throw new NotFiniteError(where, i, x[i]!);
}
