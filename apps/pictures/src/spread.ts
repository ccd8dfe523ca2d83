/** What several values of one measurement have in common, such as those of seeds. */
export interface Spread {
  readonly mean: number;
  readonly least: number;
  readonly most: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { mean, least: Math.min(...values), most: Math.max(...values) };
}

/** The standard deviation of a sample, with n − 1; undefined of fewer than two values. */
export function deviationOf(values: readonly number[]): number | undefined {
  if (values.length < 2) return undefined;
  const { mean } = spreadOf(values);
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1));
}
