import type { Segment, Tensor } from "@terse/tensor";

/**
 * What an optimizer works on: parameters in one flat tensor, and their gradients in another. An `Arena` is one, with
 * the parameters of a model.
 */
export interface FlatParameters {
  readonly parameters: Tensor; // (N), f32
  readonly gradients: Tensor; // (N), f32
  /** The parameters in order. Each begins at a multiple of 64; elements between two are 0, and stay 0. */
  readonly segments: readonly Segment[];
  /**
   * Calls `callback` with the index of a segment when backward has completed its gradient. Returns a function that
   * removes the callback.
   */
  onGradientReady(callback: (segment: number) => void): () => void;
}
