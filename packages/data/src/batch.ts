import { fromTypedArray, type Tensor } from "@terse/tensor";
import type { Arrays } from "./samples.ts";

/** The common part of the batches of all datasets. Disposing a batch, or the end of its scope, frees its tensors. */
export interface Batch extends Disposable {
  readonly rows: number; // B: the first dimension of every tensor
  readonly last: boolean; // whether it is the last batch of its step or validation
  /** What its mean loss and metrics count for: its rows, or their predictions where rows have different numbers. */
  readonly weight: number;
  /** Its weight ÷ the mean weight of all batches of its step, on all ranks: 1 where rows weigh the same. */
  readonly share: number;
  dispose(): void;
}

/** Rows of text, and the token that follows each place: −100 where it is not learned. */
export interface TextBatch extends Batch {
  readonly tokens: Tensor; // (B, T) i64
  readonly next: Tensor; // (B, T) i64: the token after each
  /** (B, T) i64, where several texts are packed into a row: 0 at the first token of each. A text sees itself alone. */
  readonly positions?: Tensor;
}

/** Images with their labels. */
export interface ImageBatch extends Batch {
  readonly images: Tensor; // (B, 3, H, W) f32, normalised
  readonly labels: Tensor; // (B) i64; with Mixup or CutMix (B, classes) f32, the share of each class
}

/** Masked language and next sentence, for BERT. */
export interface MaskedTextBatch extends Batch {
  readonly tokens: Tensor; // (B, T) i64
  readonly segments: Tensor; // (B, T) i64: 0 in the first sentence, 1 in the second
  readonly mask: Tensor; // (B, T) i64: 1 for tokens to attend to, 0 for padding
  readonly labels: Tensor; // (B, T) i64: the token that was masked, −100 where nothing is predicted
  readonly nextSentence: Tensor; // (B) i64: 0 if the second sentence follows the first, 1 if it is from another place
}

/** Sentences, or pairs of them, to classify. */
export interface LabelledTextBatch extends Batch {
  readonly tokens: Tensor; // (B, T) i64
  readonly segments: Tensor; // (B, T) i64
  readonly mask: Tensor; // (B, T) i64
  readonly labels: Tensor; // (B) i64
}

/** The batch whose tensors are `arrays`. */
export function batchOf(arrays: Arrays, last: boolean, weights: { weight?: number; share?: number } = {}): Batch {
  const tensors = Object.entries(arrays).map(([name, { data, shape }]) => [name, fromTypedArray(data, shape)] as const);
  const dispose = () => {
    for (const [, tensor] of tensors) tensor.dispose();
  };
  const rows = Object.values(arrays)[0]!.shape[0]!;
  const { weight = rows, share = 1 } = weights;
  return { ...Object.fromEntries(tensors), rows, last, weight, share, dispose, [Symbol.dispose]: dispose };
}
