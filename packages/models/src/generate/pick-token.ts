/** How a token is drawn from the model's logits. */
export interface Sampling {
  /** Logits are divided by it: below 1 for more likely tokens, 0 for always the most likely one. */
  readonly temperature?: number;
  /** Only the k most likely tokens; 0 for all. Fan, Lewis, Dauphin 2018, §5.4. */
  readonly topK?: number;
  /** Only the most likely tokens whose probabilities sum to p; 1 for all. Holtzman et al. 2020, §3.1. */
  readonly topP?: number;
}

/**
 * Draws an index from softmax(logits / temperature), restricted to the top k, and of those to the top p. u ∈ [0, 1) is
 * the random number. Tokens that are as likely as the k-th stay too, as in transformers.
 */
export function pickToken(logits: Float32Array, { temperature = 1, topK = 0, topP = 1 }: Sampling, u: number): number {
  const top = argmax(logits);
  if (temperature === 0) return top;
  const weights = Float64Array.from(logits, (x) => Math.exp((x - logits[top]!) / temperature));
  if (topK > 0 && topK < weights.length) keepTopK(weights, topK);
  if (topP < 1) keepTopP(weights, topP);
  let left = u * weights.reduce((a, b) => a + b, 0);
  for (let i = 0; i < weights.length; i++) {
    left -= weights[i]!;
    if (left < 0) return i;
  }
  return top;
}

function argmax(values: Float32Array): number {
  let top = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[top]!) top = i;
  return top;
}

function keepTopK(weights: Float64Array, k: number): void {
  const least = Float64Array.from(weights).sort()[weights.length - k]!;
  for (let i = 0; i < weights.length; i++) if (weights[i]! < least) weights[i] = 0;
}

/** Keeps a token where the more likely ones sum to less than p of the whole; the most likely one always. */
function keepTopP(weights: Float64Array, p: number): void {
  const order = [...weights.keys()].sort((a, b) => weights[b]! - weights[a]! || a - b);
  const enough = p * weights.reduce((a, b) => a + b, 0);
  let before = 0;
  for (const [rank, i] of order.entries()) {
    const weight = weights[i]!;
    if (rank > 0 && before >= enough) weights[i] = 0;
    before += weight;
  }
}
