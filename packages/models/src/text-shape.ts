import { OptionsError } from "@terse/options";
import type { DataFacts } from "./model.ts";

interface TextShape {
  readonly vocabulary: number;
  readonly context: number;
}

/**
 * The shape of a model of text: that of a preset, with the context of the data's rows, and with the options that a
 * recipe gives besides. Throws `OptionsError` where the data has more tokens than the vocabulary.
 */
export function textShape<Shape extends TextShape>(
  preset: Shape,
  given: { readonly [Key in keyof Shape]?: Shape[Key] | undefined },
  { vocabulary = 0, length }: DataFacts,
): Shape {
  const chosen = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const shape: Shape = { ...preset, ...(length !== undefined && { context: length }), ...chosen };
  if (shape.vocabulary < vocabulary)
    throw new OptionsError([
      `model.vocabulary: the data has ${vocabulary} tokens, the model only ${shape.vocabulary}; choose ${vocabulary} or more`,
    ]);
  return shape;
}
