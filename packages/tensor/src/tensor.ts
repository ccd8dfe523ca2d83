/** Tensors of libtorch: their memory, their gradients, and, as methods, the operators of operators.ts. */
import { inspect } from "node:util";
import {
  checkOptions,
  type DType,
  type Handle,
  type NativeBuffer,
  native,
  type OperatorId,
  type OperatorResult,
  type RetainedBuffer,
  type TypedArray,
} from "@terse/native-tensor";
import { typedArrayFor } from "./dtype.ts";
import { dispose, handleOf, keep, Resource } from "./lifetime.ts";
import { type Operators, operators, optionsOf } from "./operators.ts";

/** The other operand of an operator: a tensor of a shape that broadcasts, or a number. */
export type Operand = Tensor | number;

export interface Tensor extends Operators<Tensor> {}

// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the methods of Operators are given to the prototype below
export class Tensor extends Resource implements Disposable, NativeBuffer {
  // ---- properties ----

  get shape(): readonly number[] {
    return native.shape(handleOf(this));
  }
  get strides(): readonly number[] {
    return native.strides(handleOf(this));
  }
  get dtype(): DType {
    return native.dtype(handleOf(this));
  }
  /** "cpu", "cuda:0" */
  get device(): string {
    return native.device(handleOf(this));
  }
  /** Number of elements. */
  get length(): number {
    return native.length(handleOf(this));
  }
  /** Address of the first element. RangeError when the tensor is not contiguous. */
  get pointer(): bigint {
    return native.pointer(handleOf(this));
  }
  /** Keeps the memory at its address until `release`, even if the tensor is disposed. Collectives call it. */
  retain(): RetainedBuffer {
    const { pointer, length, dtype, device } = this;
    const retained = native.retain(handleOf(this));
    return { pointer, length, dtype, device, release: () => native.release(retained) };
  }
  get isContiguous(): boolean {
    return native.isContiguous(handleOf(this));
  }

  // ---- autograd ----

  get isLeaf(): boolean {
    return native.isLeaf(handleOf(this));
  }
  get requiresGrad(): boolean {
    return native.requiresGrad(handleOf(this));
  }
  set requiresGrad(wanted: boolean) {
    native.setRequiresGrad(handleOf(this), wanted);
  }
  /** The accumulated gradient. Each read gives a new Tensor object with the same memory. */
  get grad(): Tensor | null {
    const handle = native.grad(handleOf(this));
    return handle === null ? null : new Tensor(handle);
  }
  set grad(gradient: Tensor | null) {
    native.setGrad(handleOf(this), gradient === null ? null : handleOf(gradient));
  }

  /**
   * Adds the gradient of this tensor to the `.grad` of every leaf. The tensor has one element, or `gradient` has its
   * shape. Runs on another thread; several calls run in order. Do not use the leaves and their gradients until the
   * promise settles. Rejects with TensorError.
   */
  backward(options: { gradient?: Tensor; retainGraph?: boolean } = {}): Promise<void> {
    if (options instanceof Tensor) throw new TypeError("backward: give the gradient as { gradient }");
    checkOptions("backward", options, ["gradient", "retainGraph"]);
    const { gradient, retainGraph = false } = options;
    return native.backward(handleOf(this), gradient === undefined ? undefined : handleOf(gradient), retainGraph);
  }

  // ---- reading, freeing, converting ----

  /**
   * The value of a tensor with one element. Waits for the device. An i64 beyond ±(2^53 − 1) is a RangeError; read it by
   * `toTypedArray()`.
   */
  item(): number {
    const value = native.item(handleOf(this));
    if (typeof value === "bigint")
      throw new RangeError(`item: ${value} is not a safe JavaScript integer; use toTypedArray(), which gives a bigint`);
    return value;
  }

  /**
   * A copy of the elements in row-major order, with their values at the time of the call, in `array` where it is given:
   * it has their dtype and number. i64 gives a BigInt64Array, bool a Uint8Array, bf16 and f16 a Uint16Array of their
   * bits.
   */
  async toTypedArray(array: TypedArray = typedArrayFor(this.dtype, this.length)): Promise<TypedArray> {
    native.toBytes(handleOf(this), array);
    return array;
  }

  /** Frees the memory, unless a view or autograd still uses it. A second call does nothing. */
  dispose(): void {
    dispose(this);
  }
  [Symbol.dispose](): void {
    dispose(this);
  }

  /** See {@link keep}. */
  keep(): this {
    return keep(this);
  }

  [inspect.custom](): string {
    try {
      return this.toString();
    } catch {
      return "Tensor(disposed)"; // printing a disposed tensor is not an error
    }
  }
  override toString(): string {
    return `Tensor(${this.dtype}[${this.shape.join(", ")}], ${this.device})`;
  }

  /** Converts to another dtype, another device, or both. Shares the memory if nothing changes. */
  to(target: { dtype?: DType; device?: string } | DType): Tensor {
    const options = typeof target === "string" ? { dtype: target } : target;
    if (options === undefined) throw new TypeError('to: give a dtype, as in to("f64"), or { dtype, device }');
    checkOptions("to", options, ["dtype", "device"]);
    const { dtype, device } = options;
    return invoke("to.dtype_layout", [handleOf(this), dtype, undefined, device]);
  }
  /** The transpose of a tensor with at most two dimensions. */
  get T(): Tensor {
    return invoke("t", [handleOf(this)]);
  }
  /** The last two dimensions swapped. */
  get mT(): Tensor {
    return this.transpose(-2, -1);
  }
}

interface Operator {
  readonly id: OperatorId;
  readonly results: readonly OperatorResult[];
}

const known = new Map<string, Operator>();

/** The operator "add.Tensor" of libtorch's `aten`, or of another namespace: "prims::add". */
function operatorNamed(name: string): Operator {
  let operator = known.get(name);
  if (operator === undefined) {
    const id = native.find(name.includes("::") ? name : `aten::${name}`);
    operator = { id, results: native.results(id) };
    known.set(name, operator);
  }
  return operator;
}

/**
 * Calls an operator with values as libtorch takes them: handles for tensors. `given` are the values as the caller has
 * them, of which an operator that writes in place returns one. Several results are an array.
 */
// biome-ignore lint/suspicious/noExplicitAny: the result's type depends on the operator's schema
export function invoke(name: string, values: readonly unknown[], given: readonly unknown[] = []): any {
  const { id, results } = operatorNamed(name);
  const raw = native.call(id, ...values);
  if (results.length === 0) return undefined;
  if (results.length === 1) return fromNative(results[0]!, raw, given);
  return results.map((result, i) => fromNative(result, raw[i], given));
}

function fromNative(result: OperatorResult, raw: unknown, given: readonly unknown[]): unknown {
  if (typeof result === "number") return given[result];
  if (raw === null || result === "value") return raw;
  return result === "tensor" ? new Tensor(raw as Handle) : (raw as Handle[]).map((handle) => new Tensor(handle));
}

for (const [name, callOf] of Object.entries(operators)) {
  const [argument = 0, ...options] = optionsOf[name as keyof typeof optionsOf] ?? [];
  const { [name]: value } = {
    [name](this: Tensor, ...args: never[]): unknown {
      const self = handleOf(this);
      if (options.length > 0) checkOptions(name, args[argument], options);
      const [operator, ...values] = (callOf as (...args: never[]) => readonly [string, ...unknown[]])(...args);
      const result = invoke(operator, [self, ...values], [this]);
      const isPair = Array.isArray(result) && operatorNamed(operator).results.length === 2;
      return isPair ? { values: result[0], indices: result[1] } : result;
    },
  };
  Object.defineProperty(Tensor.prototype, name, { value, writable: true, configurable: true });
}

/** A new handle of the memory of `tensor`, without what computed it: for classes of tensors. */
export const detached = (tensor: Tensor): Handle => native.call(operatorNamed("detach").id, handleOf(tensor));

/** Concatenates tensors along an existing dimension. */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  return invoke("cat", [tensors.map(handleOf), dim]);
}

/** Concatenates tensors along a new dimension. */
export function stack(tensors: readonly Tensor[], dim = 0): Tensor {
  return invoke("stack", [tensors.map(handleOf), dim]);
}

/** The elements of a where the condition is true, else those of b. */
export function where(condition: Tensor, a: Tensor, b: Tensor): Tensor {
  return invoke("where.self", [condition, a, b].map(handleOf));
}
