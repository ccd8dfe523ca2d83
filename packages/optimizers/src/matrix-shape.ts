/**
 * The matrix that an algorithm for matrices sees in a parameter, or undefined where there is none: a matrix is itself,
 * and the filters of a convolution, (out, in, kh, kw), are the matrix (out, in · kh · kw), as in Jordan et al. 2024,
 * https://kellerjordan.github.io/posts/muon.
 */
export function matrixShape(shape: readonly number[]): [m: number, n: number] | undefined {
  if (shape.length !== 2 && shape.length !== 4) return undefined;
  const [m, ...others] = shape as [number, ...number[]];
  return [m, others.reduce((product, size) => product * size, 1)];
}
