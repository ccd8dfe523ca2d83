/** libtorch, or the binding, refused. The message names the operator and its tensors; `cause` has the C++ trace, if there is one. */
export class TensorError extends Error {
  override name = "TensorError";

  constructor(message: string, trace?: string) {
    super(message, trace === undefined ? undefined : { cause: trace });
  }
}

/** A tensor was used after `dispose()`, or after the scope it was born in ended. */
export class TensorDisposedError extends TensorError {
  override name = "TensorDisposedError";
}
