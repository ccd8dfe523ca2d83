/** A line of metrics.jsonl. */
export interface Line {
  readonly step: number;
  readonly [key: string]: unknown;
}

/** The numbers of a line by key; those of a list have their place in it. Texts are left out, and what is not finite. */
export function numbersOf({ step: _, ...values }: Line): { key: string; value: number; place?: number }[] {
  return Object.entries(values)
    .flatMap(([key, value]) =>
      Array.isArray(value) ? value.map((each: unknown, place) => ({ key, value: each, place })) : [{ key, value }],
    )
    .filter((each): each is { key: string; value: number; place?: number } => Number.isFinite(each.value));
}

/**
 * A line's number at a key. For NaN and infinity, which JSON lacks, a line has null or the name as a text. undefined
 * for anything else.
 */
export function numberAt(line: Line, key: string): number | undefined {
  const value = line[key];
  if (typeof value === "number") return value;
  if (value === null) return Number.NaN;
  return typeof value === "string" && /^(NaN|[-+]?Infinity)$/.test(value) ? Number(value) : undefined;
}
