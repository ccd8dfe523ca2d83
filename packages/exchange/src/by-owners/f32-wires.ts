/** Wires that are vectors of f32. They are carried by themselves, so each begins at a multiple of four bytes. */
import { type Floats, NotFiniteError } from "@terse/codecs";
import { average, copy } from "@terse/collectives";

export const floatsAt = (wire: Uint8Array): Float32Array =>
  new Float32Array(wire.buffer, wire.byteOffset, wire.byteLength / 4);

/** wire ← x. Throws NotFiniteError, which refuses the step. */
export function writeFloats(where: string, wire: Uint8Array, x: Floats): void {
  if (wire.length === 0) return;
  const floats = floatsAt(wire);
  const here = x instanceof Float32Array || x.device === "cpu";
  if (!here) copy(floats, x);
  refuse(where, floats, average(floats, [here ? x : floats]));
}

/** mean ← (1/P) Σ wires, in their order, added in fp64 and rounded once. */
export function averageFloats(mean: Float32Array, wires: readonly Uint8Array[]): void {
  average(mean, wires.map(floatsAt));
}

export function checkFinite(where: string, x: Float32Array): void {
  refuse(where, x, average(x, [x]));
}

function refuse(where: string, x: Float32Array, finite: number): void {
  if (finite < x.length) throw new NotFiniteError(where, finite, x[finite]!);
}
