import { handleOf } from "./lifetime.ts";
import { invoke, Tensor } from "./tensor.ts";

/** An argument of an operator. undefined means the schema's default, null means None. */
export type Argument =
  | Tensor
  | number
  | bigint
  | boolean
  | string
  | null
  | undefined
  | readonly (Tensor | number | bigint | boolean | null)[];

/**
 * Calls any operator of libtorch by its schema's name, such as "aten::roll" or "aten::sum.dim_IntList". Arguments are
 * in schema order, including those after the `*`. Returns what the schema returns: a Tensor, an array of tensors, a
 * number …; several results are an array.
 *
 * The schemas are in PyTorch's native_functions.yaml. Throws TensorError, also if the loaded libtorch does not have the
 * operator.
 */
// biome-ignore lint/suspicious/noExplicitAny: the result's type depends on the operator's schema
export function call(name: string, ...values: Argument[]): any {
  return invoke(name, values.map(toNative), values);
}

function toNative(value: Argument): unknown {
  if (value instanceof Tensor) return handleOf(value);
  return Array.isArray(value) ? value.map(toNative) : value;
}
