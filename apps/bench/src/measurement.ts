/** One line of a benchmark's JSON. */
export interface Measurement {
  readonly case: string;
  readonly metric: string;
  readonly value: number;
  readonly unit: string;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Case → metric → value. */
export type Values = Map<string, Map<string, number>>;

export function byCase(measurements: readonly Measurement[]): Values {
  const values: Values = new Map();
  for (const { case: name, metric, value } of measurements) {
    if (!values.has(name)) values.set(name, new Map());
    values.get(name)!.set(metric, value);
  }
  return values;
}

/**
 * The settings in the names of the cases: "lion ×2 100mbit" is side `lion`, setting "×2 100mbit". In the order of the
 * measurements.
 */
export function settingsOf(values: Values, sides: readonly string[]): string[] {
  const longest = [...sides].sort((a, b) => b.length - a.length);
  return [
    ...new Set(
      [...values.keys()].map((name) => name.slice(longest.find((each) => name.startsWith(`${each} `))!.length + 1)),
    ),
  ];
}
