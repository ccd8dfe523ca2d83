import { fromTypedArray, type Tensor } from "@terse/tensor";
import { rowsAt } from "./windows.ts";

export interface Batch {
  readonly tokens: Tensor; // (B, T) i64
  readonly next: Tensor; // (B, T) i64: the token after each
  readonly last: boolean; // of its step, or of the evaluation
}

/** The windows that start there, as tensors; whoever asks frees them, or the scope around it does. */
export function batchAt(bytes: Uint8Array, starts: readonly number[], blockSize: number, last: boolean): Batch {
  const { tokens, next } = rowsAt(bytes, starts, blockSize);
  const shape = [starts.length, blockSize];
  return { tokens: fromTypedArray(tokens, shape), next: fromTypedArray(next, shape), last };
}
