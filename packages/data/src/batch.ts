import { fromTypedArray, type Tensor } from "@terse/tensor";
import { rowsAt } from "./windows.ts";

/** What the batches of every dataset have besides their tensors. Disposing of a batch frees its tensors; so does the scope around it. */
export interface Batch extends Disposable {
  readonly rows: number; // B: first dimension of every tensor
  readonly last: boolean; // of its step, or of the validation
}

export interface TextBatch extends Batch {
  readonly tokens: Tensor; // (B, T) i64
  readonly next: Tensor; // (B, T) i64: the token after each
}

/** The windows that begin at `starts`, T = `blockSize` tokens each. */
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
