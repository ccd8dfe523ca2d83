import { flag, nonNegative, nonNegativeInteger, parseOptions, positiveInteger, v } from "@terse/options";
import { fromTypedArray, type KeyValueCache, noGrad, scope } from "@terse/tensor";
import type { TextModel } from "../model.ts";
import { pickToken, type Sampling } from "./pick-token.ts";

/** How a text is continued: how far, and how each token is drawn. */
export interface GenerateOptions extends Sampling {
  readonly length: number; // tokens to write
  /** The i-th random number in [0, 1); the same numbers give the same tokens. */
  readonly random: (i: number) => number;
  /** Stops where what was written ends with any of these, which are left out. One without tokens ends nothing. */
  readonly ends?: readonly (readonly number[])[];
  /** Writes only tokens below this number; a model may have a larger vocabulary than its tokenizer. */
  readonly vocabulary?: number;
  /** false: computes all positions again for each token, which gives the same tokens. */
  readonly cached?: boolean;
}

const generateOptions = v.object({
  length: nonNegativeInteger,
  random: v.function("expected a function that gives numbers in [0, 1), such as Math.random"),
  ends: v.optional(v.array(v.array(v.number())), []),
  vocabulary: v.optional(positiveInteger),
  cached: v.optional(flag, true),
  temperature: v.optional(nonNegative, 1),
  topK: v.optional(nonNegativeInteger, 0),
  topP: v.optional(v.pipe(nonNegative, v.maxValue(1)), 1),
});

/**
 * The tokens that a model writes after `prompt`, one by one, without dropout. Where the text is longer than the model's
 * context, its last `context` tokens count. Their positions then change with each token, so nothing can be cached from
 * there on.
 */
export async function generate(
  model: TextModel,
  prompt: readonly number[],
  options: GenerateOptions,
): Promise<number[]> {
  const { length, ends, vocabulary, cached, ...sampling } = parseOptions(generateOptions, options, "generate");
  const { random } = options;
  if (prompt.length === 0) throw new RangeError("generate: the prompt is empty; give at least one token");
  const { training, context } = model;
  const ids = [...prompt];
  let caches: KeyValueCache[] | undefined = cached ? model.createCaches(prompt.length + length) : undefined;
  const forget = () => {
    for (const cache of caches ?? []) cache[Symbol.dispose]();
    caches = undefined;
  };
  model.eval();
  try {
    for (let i = 0; i < length; i++) {
      if (ids.length > context) forget();
      const unseen = caches ? ids.slice(caches[0]?.length) : ids.slice(-context);
      const logits = await scope(async () => {
        const tokens = fromTypedArray(BigInt64Array.from(unseen, BigInt), [1, unseen.length]);
        const scores = noGrad(() => model.nextLogits(tokens, caches).to("f32"));
        return (await scores.toTypedArray()) as Float32Array;
      });
      ids.push(pickToken(logits.subarray(0, vocabulary), sampling, random(i)));
      const written = ids.slice(prompt.length);
      const end = ends.find(
        (each) =>
          each.length > 0 && written.length >= each.length && each.every((id, j) => written.at(j - each.length) === id),
      );
      if (end) return written.slice(0, -end.length);
    }
  } finally {
    forget();
    model.train(training);
  }
  return ids.slice(prompt.length);
}
