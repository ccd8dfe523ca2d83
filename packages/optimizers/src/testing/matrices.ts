/** For tests: matrices in float64, as rows of numbers. */
export type Matrix = number[][];

/** In plain loops, as `product`: tests spend much of their time here, and Array.from takes several times as long. */
export function matrix(m: number, n: number, at: (i: number, j: number) => number): Matrix {
  const rows: Matrix = [];
  for (let i = 0; i < m; i++) {
    const row: number[] = [];
    for (let j = 0; j < n; j++) row.push(at(i, j));
    rows.push(row);
  }
  return rows;
}

/** (m, n) out of numbers row by row, from `begin` on. */
export const rowsOf = (x: ArrayLike<number>, [m, n]: readonly [number, number], begin = 0): Matrix =>
  matrix(m, n, (i, j) => x[begin + i * n + j]!);

export const transposed = (a: Matrix): Matrix => matrix(a[0]!.length, a.length, (i, j) => a[j]![i]!);

export const product = (a: Matrix, b: Matrix): Matrix =>
  matrix(a.length, b[0]!.length, (i, j) => {
    const row = a[i]!;
    let sum = 0;
    for (let k = 0; k < b.length; k++) sum += row[k]! * b[k]![j]!;
    return sum;
  });

/** a + scale b */
export const added = (a: Matrix, b: Matrix, scale = 1): Matrix =>
  matrix(a.length, a[0]!.length, (i, j) => a[i]![j]! + scale * b[i]![j]!);

export const meanOf = (of: readonly Matrix[]): Matrix =>
  matrix(of[0]!.length, of[0]![0]!.length, (i, j) => of.reduce((sum, a) => sum + a[i]![j]!, 0) / of.length);

export const normOf = (a: Matrix): number => Math.hypot(...a.flat());

export const largestDifference = (a: Matrix, b: Matrix): number =>
  Math.max(...a.flatMap((row, i) => row.map((x, j) => Math.abs(x - b[i]![j]!))));

/** Orthonormal columns by Gram and Schmidt, each twice. */
export function gramSchmidt(a: Matrix): Matrix {
  const columns: Matrix = [];
  for (const column of transposed(a)) {
    let x = column;
    for (let pass = 0; pass < 2; pass++)
      for (const q of columns) {
        const along = q.reduce((sum, value, i) => sum + value * x[i]!, 0);
        x = x.map((value, i) => value - along * q[i]!);
      }
    const norm = Math.hypot(...x);
    columns.push(x.map((value) => value / norm));
  }
  return transposed(columns);
}

export function unitColumns(a: Matrix): Matrix {
  return transposed(transposed(a).map((column) => column.map((x) => x / Math.hypot(...column))));
}
