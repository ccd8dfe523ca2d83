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

/** What stands behind who took part in the names of the cases, in the order in which it was measured. */
export function settingsOf(values: Values, who: readonly string[]): string[] {
  const longest = [...who].sort((a, b) => b.length - a.length);
  return [
    ...new Set(
      [...values.keys()].map((name) => name.slice(longest.find((each) => name.startsWith(`${each} `))!.length + 1)),
    ),
  ];
}
