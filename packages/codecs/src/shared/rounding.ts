export const largestFloat = 3.4028234663852886e38;

/** The nearest whole number; of two equally near ones the even one, as IEEE 754 rounds. */
export function roundHalfEven(value: number): number {
  const below = Math.floor(value);
  const above = value - below;
  return above > 0.5 || (above === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

/** a b + c, rounded once. The exact product is a double; its sum with c is rounded to odd there, and then to fp32. */
export function fma(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  const other = sum - product;
  const rest = product - (sum - other) + (c - other); // what the sum has lost: exact
  if (rest === 0 || !Number.isFinite(sum)) return Math.fround(sum);
  double[0] = sum;
  if ((words[0]! & 1n) === 0n) words[0] = words[0]! + (rest > 0 === sum > 0 ? 1n : -1n);
  return Math.fround(double[0]);
}
const double = new Float64Array(1);
const words = new BigInt64Array(double.buffer);
