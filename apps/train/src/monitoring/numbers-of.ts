/** A line of metrics.jsonl. */
export interface Line {
  readonly step: number;
  readonly [key: string]: unknown;
}

/** A number of a line; one of a list has its place there: a name where the line has names for the places. */
export interface NumberOfLine {
  readonly key: string;
  readonly value: number;
  readonly place?: number | string;
}

/** The numbers of a line. Texts are left out, and what is not finite. */
export function numbersOf({ step: _, ...values }: Line): NumberOfLine[] {
  return Object.entries(values)
    .flatMap(([key, value]) => {
      if (!Array.isArray(value)) return [{ key, value }];
      const names = namesOfPlaces(values, key, value.length);
      return value.map((each: unknown, place) => ({ key, value: each, place: names?.[place] ?? place }));
    })
    .filter((each): each is NumberOfLine => Number.isFinite(each.value));
}

/** The numbers of a line by name: a number of a list has its place at the end. */
export const namedNumbers = (line: Line): [name: string, value: number][] =>
  numbersOf(line).map(({ key, value, place }) => [place === undefined ? key : `${key}/${place}`, value]);

/** The names of the places of the list `layers/ties` are the list `layers/names` of the same line. */
function namesOfPlaces(values: Readonly<Record<string, unknown>>, key: string, length: number): string[] | undefined {
  const names = values[key.replace(/[^/]*$/, "names")];
  const fit = Array.isArray(names) && names.length === length && names.every((name) => typeof name === "string");
  return fit ? names : undefined;
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
