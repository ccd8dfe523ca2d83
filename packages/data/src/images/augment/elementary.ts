/**
 * sin, cos, log and exp from sums and products of 64-bit floats in one order, so that every machine computes the same
 * bits. Those of Math may differ in the last bit. Relative errors are below 1e-14.
 */

/** sin x, for |x| ≤ π */
export const sine = (x: number) => series(x, 1);
/** cos x, for |x| ≤ π */
export const cosine = (x: number) => series(x, 0);

/** Σ (−1)ᵏ x²ᵏ⁺ᵖ / (2k + p)! */
function series(x: number, p: 0 | 1): number {
  let term = p === 0 ? 1 : x;
  let sum = term;
  for (let n = p; n < 34; n += 2) {
    term *= -(x * x) / ((n + 1) * (n + 2));
    sum += term;
  }
  return sum;
}

/** ln x, for 2⁻¹⁰⁰⁰ < x < 2¹⁰⁰⁰: x = m 2ᵉ with ½ √2 ≤ m < √2, and ln m = 2 artanh((m − 1) / (m + 1)) */
export function naturalLogarithm(x: number): number {
  let [m, e] = [x, 0];
  for (; m >= Math.SQRT2; m /= 2) e++;
  for (; m < Math.SQRT1_2; m *= 2) e--;
  const s = (m - 1) / (m + 1);
  let [power, sum] = [s, s];
  for (let k = 3; k < 28; k += 2) {
    power *= s * s;
    sum += power / k;
  }
  return 2 * sum + e * Math.LN2;
}

/** eˣ, for x ≤ 700; 0 below −700 */
export function exponential(x: number): number {
  if (x < -700) return 0;
  const n = Math.round(x / Math.LN2);
  const r = x - n * Math.LN2;
  let [term, sum] = [1, 1];
  for (let k = 1; k < 18; k++) {
    term *= r / k;
    sum += term;
  }
  for (let i = 0; i < n; i++) sum *= 2;
  for (let i = 0; i > n; i--) sum /= 2;
  return sum;
}
