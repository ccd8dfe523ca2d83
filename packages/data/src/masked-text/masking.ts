/** The masked tokens of BERT: Devlin et al. 2019, §3.1 and appendix A.1, https://arxiv.org/abs/1810.04805 */
import type { RandomNumbers } from "../random.ts";

export const notPredicted = -100; // the label that a cross entropy ignores

interface Masking {
  readonly fraction: number; // of the places, that are predicted
  readonly mask: number; // the id of [MASK]
  readonly vocabulary: number; // random tokens are below it
}

/**
 * Chooses `fraction` of `places`, rounded, and at least one. Of the chosen, 80 % become [MASK], 10 % become a random
 * token, and 10 % stay. Changes `tokens`, and returns the labels: the original token at chosen places, −100 at the
 * others.
 */
export function maskTokens(
  tokens: Int32Array,
  places: readonly number[],
  { fraction, mask, vocabulary }: Masking,
  random: RandomNumbers,
): Int32Array {
  const labels = new Int32Array(tokens.length).fill(notPredicted);
  const left = [...places];
  const chosen = Math.max(1, Math.round(fraction * places.length));
  for (let i = 0; i < chosen; i++) {
    const j = i + random.below(left.length - i); // the first i + 1 of `left` are a random choice
    [left[i], left[j]] = [left[j]!, left[i]!];
    const place = left[i]!;
    labels[place] = tokens[place]!;
    const way = random.below(10);
    if (way < 8) tokens[place] = mask;
    else if (way === 8) tokens[place] = random.below(vocabulary);
  }
  return labels;
}
