/** Batches of random values. */
import { full, ones, rand, randint, where } from "@terse/tensor";

interface Shape {
  readonly vocabulary: number;
  readonly context: number;
}

export const labels = (count: number, classes: number) => randint(0, classes, [count]);

/** Rows of a language model. */
export function textOf(rows: number, { vocabulary, context }: Shape, device?: string) {
  const tokens = randint(0, vocabulary, [rows, context + 1], device === undefined ? {} : { device });
  const from = (begin: number) => tokens.narrow(1, begin, context).contiguous();
  return { tokens: from(0), next: from(1) };
}

/** Rows of BERT, of whose words some are to be predicted. */
export function maskedTextOf(rows: number, { vocabulary, context }: Shape) {
  const tokens = randint(0, vocabulary, [rows, context]);
  const predicted = rand([rows, context]).lt(0.15);
  return {
    tokens,
    segments: randint(0, 2, [rows, context]),
    mask: ones([rows, context], { dtype: "i64" }),
    labels: where(predicted, tokens, full([], -100, { dtype: "i64" })),
    nextSentence: labels(rows, 2),
  };
}
