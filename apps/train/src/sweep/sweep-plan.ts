/** What a sweep runs: every combination of the values that the command line gives, each with every seed. */
import { OptionsError, parseYamlValue } from "@terse/options";
import { splitValues } from "./split-values.ts";

/** One run of a sweep. */
export interface PlannedRun {
  readonly name: string; // of its folder
  readonly seed: number;
  /** The text of each swept key, as the command line has it. */
  readonly values: Readonly<Record<string, string>>;
}

/** plan.json of a sweep's folder. */
export interface SweepPlan {
  readonly format: 1;
  /** The recipe as the command line names it, for people; base-recipe.json has what it said. */
  readonly recipe: string;
  /** Where the command was given: paths of the recipe and of flags are relative to it. */
  readonly directory: string;
  readonly ranks: number;
  readonly flags: readonly string[]; // of ./terse train, the same for all runs
  readonly overrides: readonly string[]; // the same for all runs
  readonly keys: readonly string[]; // that are swept
  readonly runs: readonly PlannedRun[];
}

/** Options with one value, and with several. */
export interface Combinations {
  readonly fixed: readonly string[]; // "steps=100"
  readonly swept: ReadonlyMap<string, readonly string[]>;
}

/** `given`: "optimizer.lr=1e-3,2e-3"; a key that is repeated has all its values. Throws `OptionsError`. */
export function combinationsOf(given: readonly string[]): Combinations {
  const all = new Map<string, string[]>();
  for (const each of given) {
    const equals = each.indexOf("=");
    const key = each.slice(0, equals);
    all.set(key, [...(all.get(key) ?? []), ...splitValues(key, each.slice(equals + 1))]);
  }
  const problems: string[] = [];
  for (const [key, values] of all) {
    const parsed = values.map((value) => JSON.stringify(parseYamlValue(value, key)));
    const twice = parsed.findIndex((value, i) => parsed.indexOf(value) < i);
    if (twice >= 0) problems.push(`--${key}: the value ${values[twice]} is given twice; leave one out`);
  }
  if (problems.length > 0) throw new OptionsError(problems);
  return {
    fixed: [...all].flatMap(([key, values]) => (values.length === 1 ? [`${key}=${values[0]}`] : [])),
    swept: new Map([...all].filter(([, values]) => values.length > 1)),
  };
}

/** All runs: first those with the first seed, so that a sweep that is cut off has compared everything once. */
export function plannedRuns(swept: ReadonlyMap<string, readonly string[]>, seeds: readonly number[]): PlannedRun[] {
  let combinations: Record<string, string>[] = [{}];
  for (const [key, values] of swept)
    combinations = combinations.flatMap((before) => values.map((value) => ({ ...before, [key]: value })));
  const labels = labelsOf([...swept.keys()]);
  const names = distinct(combinations.map((values) => nameOf(values, labels)));
  return seeds.flatMap((seed) =>
    combinations.map((values, i) => ({ name: `${names[i]}${names[i] === "" ? "" : "-"}seed-${seed}`, seed, values })),
  );
}

/** The shortest end of each dotted key that no other key has: "lr" of optimizer.lr. */
export function labelsOf(keys: readonly string[]): Map<string, string> {
  return new Map(
    keys.map((key) => {
      const parts = key.split(".");
      const ends = parts.map((_, i) => parts.slice(parts.length - 1 - i).join("."));
      const isOnly = (end: string) => keys.every((other) => other === key || !`.${other}`.endsWith(`.${end}`));
      return [key, ends.find(isOnly) ?? key];
    }),
  );
}

const longestValue = 40;

/** "lion-cub-lr-1e-3": the value alone says what a name is. */
function nameOf(values: Readonly<Record<string, string>>, labels: ReadonlyMap<string, string>): string {
  return Object.entries(values)
    .map(([key, value]) => {
      const plain = value.replaceAll(/[^\w.+-]+/g, "_").replaceAll(/^[_.]+|_+$/g, "");
      const short = plain.slice(0, longestValue) || "value";
      const label = labels.get(key)!;
      return label === "name" ? short : `${label}-${short}`;
    })
    .join("-");
}

/** Names that are the same, also where large and small letters are one, get numbers. */
function distinct(names: readonly string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const count = (seen.get(name.toLowerCase()) ?? 0) + 1;
    seen.set(name.toLowerCase(), count);
    return count === 1 ? name : `${name}-${count}`;
  });
}

/** The overrides of a run's recipe. */
export const overridesOf = ({ overrides }: Pick<SweepPlan, "overrides">, { seed, values }: PlannedRun): string[] => [
  ...overrides,
  ...Object.entries(values).map(([key, value]) => `${key}=${value}`),
  `seed=${seed}`,
];

/** "optimizer.lr=1e-3 optimizer.name=lion" */
export const combinationText = ({ values }: Pick<PlannedRun, "values">): string =>
  Object.entries(values)
    .map(([key, value]) => `${key}=${value}`)
    .join(" ");
