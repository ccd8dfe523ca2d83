/** Checks of parameters, for the factories of codecs. */
import type { Parameters } from "@terse/native-codecs";
import type { ScaleGroups } from "./scale-groups/scale-groups.ts";

/** A codec does not take this value of a parameter. */
export class ParameterError extends RangeError {
  override name = "RangeError";
  readonly parameter: string;
  /** "9, and must be a whole number, from 2 to 8" */
  readonly problem: string;

  constructor(codec: string, parameter: string, value: unknown, mustBe: string) {
    const problem = `${String(value)}, and must be ${mustBe}`;
    super(`${codec}: ${parameter} is ${problem}.`);
    this.parameter = parameter;
    this.problem = problem;
  }
}

/** The sum of this many ranks does not fit into the widest field. */
export class SumTooWideError extends RangeError {
  override name = "RangeError";
  /** What cannot be summed: the codec `count`, whose fields are chosen by a width, or a sum of levels. */
  readonly of: string;

  constructor(of: string, message: string) {
    super(`${of}: ${message}`);
    this.of = of;
  }
}

/** A whole number from `least` to `most`. */
export function checkWhole(codec: string, name: string, value: number, least: number, most = 2 ** 48): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  const unlimited = most === 2 ** 48 && !(value > most);
  const range = unlimited ? `${least} or more` : `from ${least} to ${most}`;
  throw new ParameterError(codec, name, value, `a whole number, ${range}`);
}

/**
 * Either block or segments, or neither. That the segments add up to n is checked by scaleGroupCount, where n is known.
 */
export function checkScaleGroups(codec: string, { block, segments }: ScaleGroups): void {
  if (block !== undefined && segments !== undefined)
    throw new RangeError(`${codec}: both block and segments are given; give one of them, or neither.`);
  if (block !== undefined) checkWhole(codec, "block", block, 1);
  if (segments === undefined) return;
  if (!Array.isArray(segments)) throw new TypeError(`${codec}: segments must be an array of lengths.`);
  for (const [s, length] of segments.entries()) checkWhole(codec, `segments[${s}]`, length, 0);
}

/** No parameters but these. */
export function checkNames(codec: string, parameters: Parameters, taken: readonly string[]): void {
  if (typeof parameters !== "object" || parameters === null)
    throw new TypeError(
      `${codec}: parameters are ${String(parameters)}, and must be an object, as in ${codec}({ … }).`,
    );
  for (const name of Object.keys(parameters)) {
    if (taken.includes(name)) continue;
    throw new RangeError(`${codec} takes ${taken.join(", ") || "no parameters"}, not ${name}.`);
  }
}

/** One of the given words. */
export function checkChoice(codec: string, name: string, value: unknown, choices: readonly string[]): void {
  if (!choices.includes(value as string)) throw new ParameterError(codec, name, value, choices.join(" or "));
}
