/** Schemas of single options, for use in a schema of several: `beta1: v.optional(unitInterval, 0.9)`. */
import * as v from "valibot";
import { describe, type Schema } from "./describe.ts";

/** Any number but NaN and ±∞. */
export const finite = v.pipe(v.number(), v.finite());
/** x > 0 */
export const positive = v.pipe(finite, v.gtValue(0));
/** x ≥ 0 */
export const nonNegative = v.pipe(finite, v.minValue(0));
/** 0 < x < 1: a part of something. */
export const fraction = v.pipe(positive, v.ltValue(1));
/** 0 ≤ x < 1, such as β or dropout. */
export const unitInterval = v.pipe(finite, v.minValue(0), v.ltValue(1));

/**
 * A condition on a number that a kernel takes as a 32-bit float: it must hold for the rounded number too. 1e39 is ∞
 * there, and 1e-50 is 0, which no other number becomes.
 */
const asFloat = (schema: v.GenericSchema<number>) =>
  v.pipe(
    schema,
    v.check(
      (x) => !v.is(schema, x) || (v.is(schema, Math.fround(x)) && (Math.fround(x) !== 0 || x === 0)),
      ({ input }) =>
        `expected ${describe(schema as Schema)} as a 32-bit float, got ${input}, which is ${Math.fround(input as number)} there`,
    ),
  );

/** x > 0, as a 32-bit float too. */
export const positiveFloat = asFloat(positive);
/** x ≥ 0, as a 32-bit float too. */
export const nonNegativeFloat = asFloat(nonNegative);
/** 0 ≤ x < 1, as a 32-bit float too. */
export const unitIntervalFloat = asFloat(unitInterval);

/** 1, 2, 3 … (exact in a double: at most 2⁵³ − 1) */
export const positiveInteger = v.pipe(v.number(), v.safeInteger(), v.minValue(1));
/** 0, 1, 2 … */
export const nonNegativeInteger = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** true or false */
export const flag = v.boolean();
/** A string with at least one character. */
export const text = v.pipe(v.string(), v.nonEmpty());
/** One of these words: `oneOf(["plus", "minus"])`. */
export const oneOf = <const Words extends readonly string[]>(words: Words) => v.picklist(words);
