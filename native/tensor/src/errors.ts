/**
 * An error of libtorch or of the binding. The message names the operator and its tensors; `cause` is the C++ trace, if
 * there is one.
 */
export class TensorError extends Error {
  override name = "TensorError";

  constructor(message: string, trace?: string) {
    super(message, trace === undefined ? undefined : { cause: trace });
  }
}

/** A tensor was used after `dispose()`, or after the end of the scope that created it. */
export class TensorDisposedError extends TensorError {
  override name = "TensorDisposedError";
}
