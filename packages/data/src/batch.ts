import { fromTypedArray, type Tensor } from "@terse/tensor";
import { rowsAt } from "./windows.ts";

/** The common part of batches of all datasets. Disposing a batch frees its tensors, as does the scope in which it was created. */
export interface Batch extends Disposable {
  readonly rows: number; // B: the first dimension of every tensor
  readonly last: boolean; // whether it is the last batch of its step or validation
}

export interface TextBatch extends Batch {
  readonly tokens: Tensor; // (B, T) i64
  readonly next: Tensor; // (B, T) i64: the token after each
}

/** A batch of the windows that start at `starts`, of T = `blockSize` tokens each. */
export function batchAt(bytes: Uint8Array, starts: readonly number[], blockSize: number, last: boolean): TextBatch {
  const windows = rowsAt(bytes, starts, blockSize);
  const shape = [starts.length, blockSize];
  const [tokens, next] = [fromTypedArray(windows.tokens, shape), fromTypedArray(windows.next, shape)];
  return {
    tokens,
    next,
    rows: starts.length,
    last,
    [Symbol.dispose]() {
      tokens.dispose();
      next.dispose();
    },
  };
}
