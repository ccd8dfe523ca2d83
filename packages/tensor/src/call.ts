import { type Handle, native, type OperatorId, type OperatorResult } from "@terse/native-tensor";
import { handleOf } from "./lifetime.ts";
import { Tensor } from "./tensor.ts";

/** What an operator takes, in the order of its schema. undefined takes the default, null is None. */
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
 * Any ATen operator by its schema's name, "aten::roll" or "aten::sum.dim_IntList", with the arguments in schema order, those after
 * the `*` too. Gives what the schema returns: a Tensor, an array of them, a number …; several results come as an array.
 *
 * The schemas stand in PyTorch's native_functions.yaml. TensorError names an operator that the loaded libtorch lacks.
 */
// biome-ignore lint/suspicious/noExplicitAny: what comes back is written in the operator's schema
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
  if (typeof result === "number") return values[result]; // written in place: the caller's own tensor
  if (raw === null || result === "value") return raw;
  return result === "tensor" ? new Tensor(raw as Handle) : (raw as Handle[]).map((handle) => new Tensor(handle));
}
