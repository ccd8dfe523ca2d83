/**
 * Reductions over a scale group, from which its scale is computed. Every implementation gives the same bits.
 *
 *   partial[j] of 64 Ki elements = sum over i = j, j + 16, j + 32, … in that order, in fp64          j = 0 … 15
 *   fold: partial[j] += partial[j + 8] for j < 8, then + 4, + 2, + 1
 *   the sum = partial[0] of each 64 Ki elements, added in order
 */
const chunk = 1 << 16;

const sum = (x: Float32Array, of: (value: number) => number): number => {
  let all = 0;
  for (let at = 0; at < x.length; at += chunk) {
    const partial = new Float64Array(16);
    const end = Math.min(at + chunk, x.length);
    for (let i = at; i < end; i++) partial[(i - at) % 16]! += of(x[i]!);
    for (let stride = 8; stride >= 1; stride /= 2) {
      for (let j = 0; j < stride; j++) partial[j]! += partial[j + stride]!;
    }
    all += partial[0]!;
  }
  return all;
};

/** Σ x */
export const sumOfValues = (x: Float32Array): number => sum(x, (value) => value);

/** ‖x‖₁ */
export const sumOfMagnitudes = (x: Float32Array): number => sum(x, Math.abs);

/** ‖x‖₂² */
export const sumOfSquares = (x: Float32Array): number => sum(x, (value) => value * value);

/** The standard deviation, √(mean (x − mean x)²), with sums as above; 0 if all elements are equal. */
export function deviation(x: Float32Array): number {
  if (x.length === 0) return 0;
  const mean = sumOfValues(x) / x.length;
  return Math.sqrt(sum(x, (value) => (value - mean) ** 2) / x.length);
}

/** ‖x‖∞; 0 for an empty x. */
export const largest = (x: Float32Array): number => x.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** Index of the first NaN or infinity; x.length if there is none. */
export function firstNotFinite(x: Float32Array): number {
  const index = x.findIndex((value) => !Number.isFinite(value));
  return index < 0 ? x.length : index;
}
