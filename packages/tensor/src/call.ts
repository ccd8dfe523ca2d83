import { type Handle, native, type OperatorId, type OperatorResult } from "@terse/native-tensor";
import { handleOf } from "./lifetime.ts";
import { Tensor } from "./tensor.ts";

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

interface Operator {
  readonly id: OperatorId;
  readonly results: readonly OperatorResult[];
}

const operators = new Map<string, Operator>();

function operator(name: string): Operator {
  let known = operators.get(name);
  if (known === undefined) {
    const id = native.find(name);
    known = { id, results: native.results(id) };
    operators.set(name, known);
  }
  return known;
}

/**
 * Calls any operator of libtorch by its schema's name, such as "aten::roll" or "aten::sum.dim_IntList". Arguments are in schema order,
 * including those after the `*`. Returns what the schema returns: a Tensor, an array of tensors, a number …; several results are an array.
 *
 * The schemas are in PyTorch's native_functions.yaml. Throws TensorError, also if the loaded libtorch does not have the operator.
 */
// biome-ignore lint/suspicious/noExplicitAny: the result's type depends on the operator's schema
export function call(name: string, ...values: Argument[]): any {
  const { id, results } = operator(name);
  const raw = native.call(id, ...values.map(toNative));
  if (results.length === 0) return undefined;
  if (results.length === 1) return fromNative(results[0]!, raw, values);
  return results.map((result, i) => fromNative(result, raw[i], values));
}

function toNative(value: Argument): unknown {
  if (value instanceof Tensor) return handleOf(value);
  return Array.isArray(value) ? value.map(toNative) : value;
}

function fromNative(result: OperatorResult, raw: unknown, values: readonly Argument[]): unknown {
  if (typeof result === "number") return values[result]; // the operator wrote into this argument
  if (raw === null || result === "value") return raw;
  return result === "tensor" ? new Tensor(raw as Handle) : (raw as Handle[]).map((handle) => new Tensor(handle));
}
