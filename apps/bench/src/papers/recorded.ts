/** Numbers that other suites have recorded, for rows that need no training of their own. */
import { byCase, type Values } from "../measurement.ts";
import { type RecordedLine, readLines } from "../recording.ts";
import { type MeasurableItem, type Reading, ratioText, reading } from "./item.ts";

/** The recorded lines of a suite. */
export const recordedLines = (suite: string): RecordedLine[] =>
  readLines(new URL(`../../../../docs/results/${suite}.jsonl`, import.meta.url));

/** The recorded values of a suite. */
export const recordedValues = (suite: string): Values => byCase(recordedLines(suite));

/** A recorded value. Throws where it is missing, with the command that records it. */
export function recordedValue(suite: string, name: string, metric: string, settings: string): number {
  const value = recordedValues(suite).get(name)?.get(metric);
  if (value === undefined)
    throw new Error(
      `it rests on ${metric} of "${name}", which is not recorded: ./terse bench ${suite} --settings ${settings} --record`,
    );
  return value;
}

/** The last losses of methods of `bench convergence`, for each recorded seed: "loss of lion, seed 1". */
export function* recordedLosses(methods: readonly string[]): Generator<Reading> {
  const values = recordedValues("convergence");
  for (const method of methods) {
    const seeds = [...values].filter(([name]) => name.startsWith(`${method}, seed `));
    if (seeds.length === 0) recordedValue("convergence", `${method}, seed 1`, "validation_loss", method);
    for (const [name, metrics] of seeds)
      yield reading(`loss of ${name}`, metrics.get("validation_loss") ?? Number.NaN, "nats/byte");
  }
}

/** A method as good as another: at most 2 % above it in the mean. */
export const asGood = (of: {
  what: string;
  claim: string;
  method: string;
  other: string;
  rule?: string;
}): MeasurableItem => ({
  what: of.what,
  claim: of.claim,
  rule: of.rule ?? `loss of ${of.method} ÷ ${of.other} with the same seed at most 1.02 in the mean (bench convergence)`,
  measure: () => recordedLosses([of.method, of.other]),
  measured: (readings) => ratioText(readings.ratio(of.method, of.other)),
  holds: (readings) => readings.ratio(of.method, of.other).mean <= 1.02,
});
