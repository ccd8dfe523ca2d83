/** Schemas of single options, for use in a schema of several: `beta1: v.optional(unitInterval, 0.9)`. */
import * as v from "valibot";

/** Any number but NaN and ±∞. */
export const finite = v.pipe(v.number(), v.finite());
/** x > 0 */
export const positive = v.pipe(finite, v.gtValue(0));
/** x ≥ 0 */
export const nonNegative = v.pipe(finite, v.minValue(0));
/** 0 ≤ x < 1, such as β, dropout, or a fraction below the whole. */
export const unitInterval = v.pipe(finite, v.minValue(0), v.ltValue(1));
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
