/**
 * Tensors of libtorch, with PyTorch's names in camelCase. A trailing `_` writes in place. Every method is one ATen operator; use
 * `call("aten::name.overload", …)` for any other operator.
 *
 * As a scalar, a JavaScript integer is an integer for libtorch: an i64 tensor plus 1 stays i64, an f32 tensor stays f32.
 */
import { inspect } from "node:util";
import {
  type DType,
  type Handle,
  type NativeBuffer,
  native,
  type RetainedBuffer,
  type TypedArray,
} from "@terse/native-tensor";
import { typedArrayFor } from "./dtype.ts";
import { dispose, handleOf, keep, Resource } from "./lifetime.ts";

export type Dim = number | readonly number[];
export type Operand = Tensor | number;

const op = (name: string): number => native.find(`aten::${name}`);

const id = {
  add: op("add.Tensor"),
  addNumber: op("add.Scalar"),
  sub: op("sub.Tensor"),
  subNumber: op("sub.Scalar"),
  rsub: op("rsub.Scalar"),
  mul: op("mul.Tensor"),
  mulNumber: op("mul.Scalar"),
  div: op("div.Tensor"),
  divNumber: op("div.Scalar"),
  divMode: op("div.Tensor_mode"),
  divNumberMode: op("div.Scalar_mode"),
  pow: op("pow.Tensor_Tensor"),
  powNumber: op("pow.Tensor_Scalar"),
  maximum: op("maximum"),
  minimum: op("minimum"),
  addcmul: op("addcmul"),
  addcdiv: op("addcdiv"),
  lerp: op("lerp.Scalar"),

  neg: op("neg"),
  abs: op("abs"),
  sign: op("sign"),
  exp: op("exp"),
  log: op("log"),
  sqrt: op("sqrt"),
  rsqrt: op("rsqrt"),
  reciprocal: op("reciprocal"),
  square: op("square"),
  sin: op("sin"),
  cos: op("cos"),
  tanh: op("tanh"),
  sigmoid: op("sigmoid"),
  relu: op("relu"),
  silu: op("silu"),
  gelu: op("gelu"),
  floor: op("floor"),
  ceil: op("ceil"),
  round: op("round"),
  clamp: op("clamp"),
  isfinite: op("isfinite"),
  isnan: op("isnan"),

  eq: op("eq.Tensor"),
  eqNumber: op("eq.Scalar"),
  ne: op("ne.Tensor"),
  neNumber: op("ne.Scalar"),
  lt: op("lt.Tensor"),
  ltNumber: op("lt.Scalar"),
  le: op("le.Tensor"),
  leNumber: op("le.Scalar"),
  gt: op("gt.Tensor"),
  gtNumber: op("gt.Scalar"),
  ge: op("ge.Tensor"),
  geNumber: op("ge.Scalar"),
  logicalAnd: op("logical_and"),
  logicalOr: op("logical_or"),
  logicalNot: op("logical_not"),
  where: op("where.self"),
  equal: op("equal"),
  allclose: op("allclose"),

  sum: op("sum"),
  sumDim: op("sum.dim_IntList"),
  mean: op("mean"),
  meanDim: op("mean.dim"),
  var: op("var.correction"),
  std: op("std.correction"),
  norm: op("linalg_vector_norm"),
  max: op("max"),
  maxDim: op("max.dim"),
  min: op("min"),
  minDim: op("min.dim"),
  amax: op("amax"),
  amin: op("amin"),
  argmax: op("argmax"),
  argmin: op("argmin"),
  all: op("all"),
  any: op("any"),
  cumsum: op("cumsum"),
  logsumexp: op("logsumexp"),
  softmax: op("softmax.int"),
  logSoftmax: op("log_softmax.int"),

  matmul: op("matmul"),
  mm: op("mm"),
  bmm: op("bmm"),
  addmm: op("addmm"),
  dot: op("dot"),
  outer: op("outer"),

  view: op("view"),
  reshape: op("reshape"),
  flatten: op("flatten.using_ints"),
  transpose: op("transpose.int"),
  t: op("t"),
  permute: op("permute"),
  squeeze: op("squeeze"),
  squeezeDim: op("squeeze.dim"),
  unsqueeze: op("unsqueeze"),
  expand: op("expand"),
  repeat: op("repeat"),
  narrow: op("narrow"),
  select: op("select.int"),
  slice: op("slice.Tensor"),
  split: op("split.Tensor"),
  splitSizes: op("split_with_sizes"),
  chunk: op("chunk"),
  unbind: op("unbind.int"),
  contiguous: op("contiguous"),
  flip: op("flip"),
  tril: op("tril"),
  triu: op("triu"),
  diagonal: op("diagonal"),
  cat: op("cat"),
  stack: op("stack"),

  indexSelect: op("index_select"),
  gather: op("gather"),
  index: op("index.Tensor"),
  maskedFill: op("masked_fill.Scalar"),
  maskedSelect: op("masked_select"),
  topk: op("topk"),
  sort: op("sort"),
  multinomial: op("multinomial"),

  to: op("to.dtype_layout"),
  clone: op("clone"),
  detach: op("detach"),

  add_: op("add_.Tensor"),
  addNumber_: op("add_.Scalar"),
  sub_: op("sub_.Tensor"),
  subNumber_: op("sub_.Scalar"),
  mul_: op("mul_.Tensor"),
  mulNumber_: op("mul_.Scalar"),
  div_: op("div_.Tensor"),
  divNumber_: op("div_.Scalar"),
  addmm_: op("addmm_"),
  addcmul_: op("addcmul_"),
  addcdiv_: op("addcdiv_"),
  lerp_: op("lerp_.Scalar"),
  copy_: op("copy_"),
  zero_: op("zero_"),
  fill_: op("fill_.Scalar"),
  neg_: op("neg_"),
  sqrt_: op("sqrt_"),
  relu_: op("relu_"),
  clamp_: op("clamp_"),
  maskedFill_: op("masked_fill_.Scalar"),
  normal_: op("normal_"),
  uniform_: op("uniform_"),
  bernoulli_: op("bernoulli_.float"),
};

/** Calls an operator that returns one new tensor. */
function run(operator: number, ...values: unknown[]): Tensor {
  return new Tensor(native.call(operator, ...values) as Handle);
}

function runMany(operator: number, ...values: unknown[]): Tensor[] {
  return (native.call(operator, ...values) as Handle[]).map((handle) => new Tensor(handle));
}

const dims = (dim: Dim | undefined): readonly number[] | undefined => (typeof dim === "number" ? [dim] : dim);
const sizes = (shape: readonly (number | readonly number[])[]): readonly number[] =>
  (shape.length === 1 && typeof shape[0] === "object" ? shape[0] : shape) as readonly number[];

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
   * Adds the gradient of this tensor to the `.grad` of every leaf. The tensor has one element, or `gradient` has its shape. Runs on another
   * thread; several calls run in order. Do not use the leaves and their gradients until the promise settles. Rejects with TensorError.
   */
  backward({ gradient, retainGraph = false }: { gradient?: Tensor; retainGraph?: boolean } = {}): Promise<void> {
    return native.backward(handleOf(this), gradient === undefined ? undefined : handleOf(gradient), retainGraph);
  }

  // ---- reading, freeing, converting ----

  /** The value of a tensor with one element. Waits for the device. An i64 beyond ±(2^53 − 1) is a RangeError; read it by `toTypedArray()`. */
  item(): number {
    const value = native.item(handleOf(this));
    if (typeof value === "bigint")
      throw new RangeError(`item: ${value} is not a safe JavaScript integer; use toTypedArray(), which gives a bigint`);
    return value;
  }

  /**
   * A copy of the elements in row-major order, with their values at the time of the call, in `array` where it is given: it has their dtype
   * and number. i64 gives a BigInt64Array, bool a Uint8Array, bf16 and f16 a Uint16Array of their bits.
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
    const { dtype, device } = typeof target === "string" ? { dtype: target, device: undefined } : target;
    return new Tensor(native.call(id.to, handleOf(this), dtype, undefined, device) as Handle);
  }
  clone(): Tensor {
    return run(id.clone, handleOf(this));
  }
  detach(): Tensor {
    return run(id.detach, handleOf(this));
  }

  // ---- element by element ----

  /** this + alpha · other */
  add(other: Operand, { alpha = 1 }: { alpha?: number } = {}): Tensor {
    return typeof other === "number"
      ? run(id.addNumber, handleOf(this), other, alpha)
      : run(id.add, handleOf(this), handleOf(other), alpha);
  }
  /** this − alpha · other */
  sub(other: Operand, { alpha = 1 }: { alpha?: number } = {}): Tensor {
    return typeof other === "number"
      ? run(id.subNumber, handleOf(this), other, alpha)
      : run(id.sub, handleOf(this), handleOf(other), alpha);
  }
  /** other − this */
  rsub(other: number): Tensor {
    return run(id.rsub, handleOf(this), other);
  }
  mul(other: Operand): Tensor {
    return typeof other === "number"
      ? run(id.mulNumber, handleOf(this), other)
      : run(id.mul, handleOf(this), handleOf(other));
  }
  div(other: Operand, { rounding }: { rounding?: "trunc" | "floor" } = {}): Tensor {
    if (rounding === undefined)
      return typeof other === "number"
        ? run(id.divNumber, handleOf(this), other)
        : run(id.div, handleOf(this), handleOf(other));
    return typeof other === "number"
      ? run(id.divNumberMode, handleOf(this), other, rounding)
      : run(id.divMode, handleOf(this), handleOf(other), rounding);
  }
  pow(exponent: Operand): Tensor {
    return typeof exponent === "number"
      ? run(id.powNumber, handleOf(this), exponent)
      : run(id.pow, handleOf(this), handleOf(exponent));
  }
  maximum(other: Tensor): Tensor {
    return run(id.maximum, handleOf(this), handleOf(other));
  }
  minimum(other: Tensor): Tensor {
    return run(id.minimum, handleOf(this), handleOf(other));
  }
  /** this + value · a ⊙ b */
  addcmul(a: Tensor, b: Tensor, { value = 1 }: { value?: number } = {}): Tensor {
    return run(id.addcmul, handleOf(this), handleOf(a), handleOf(b), value);
  }
  /** this + value · a ⊘ b */
  addcdiv(a: Tensor, b: Tensor, { value = 1 }: { value?: number } = {}): Tensor {
    return run(id.addcdiv, handleOf(this), handleOf(a), handleOf(b), value);
  }
  /** this + weight · (end − this) */
  lerp(end: Tensor, weight: number): Tensor {
    return run(id.lerp, handleOf(this), handleOf(end), weight);
  }
  clamp({ min, max }: { min?: number; max?: number }): Tensor {
    return run(id.clamp, handleOf(this), min, max);
  }
  neg(): Tensor {
    return run(id.neg, handleOf(this));
  }
  abs(): Tensor {
    return run(id.abs, handleOf(this));
  }
  sign(): Tensor {
    return run(id.sign, handleOf(this));
  }
  exp(): Tensor {
    return run(id.exp, handleOf(this));
  }
  log(): Tensor {
    return run(id.log, handleOf(this));
  }
  sqrt(): Tensor {
    return run(id.sqrt, handleOf(this));
  }
  rsqrt(): Tensor {
    return run(id.rsqrt, handleOf(this));
  }
  reciprocal(): Tensor {
    return run(id.reciprocal, handleOf(this));
  }
  square(): Tensor {
    return run(id.square, handleOf(this));
  }
  sin(): Tensor {
    return run(id.sin, handleOf(this));
  }
  cos(): Tensor {
    return run(id.cos, handleOf(this));
  }
  tanh(): Tensor {
    return run(id.tanh, handleOf(this));
  }
  sigmoid(): Tensor {
    return run(id.sigmoid, handleOf(this));
  }
  relu(): Tensor {
    return run(id.relu, handleOf(this));
  }
  /** x · σ(x) */
  silu(): Tensor {
    return run(id.silu, handleOf(this));
  }
  gelu({ approximate = "none" }: { approximate?: "none" | "tanh" } = {}): Tensor {
    return run(id.gelu, handleOf(this), approximate);
  }
  floor(): Tensor {
    return run(id.floor, handleOf(this));
  }
  ceil(): Tensor {
    return run(id.ceil, handleOf(this));
  }
  /** Half to even. */
  round(): Tensor {
    return run(id.round, handleOf(this));
  }
  isfinite(): Tensor {
    return run(id.isfinite, handleOf(this));
  }
  isnan(): Tensor {
    return run(id.isnan, handleOf(this));
  }

  // ---- comparisons: bool tensors ----

  eq(other: Operand): Tensor {
    return typeof other === "number"
      ? run(id.eqNumber, handleOf(this), other)
      : run(id.eq, handleOf(this), handleOf(other));
  }
  ne(other: Operand): Tensor {
    return typeof other === "number"
      ? run(id.neNumber, handleOf(this), other)
      : run(id.ne, handleOf(this), handleOf(other));
  }
  lt(other: Operand): Tensor {
    return typeof other === "number"
      ? run(id.ltNumber, handleOf(this), other)
      : run(id.lt, handleOf(this), handleOf(other));
  }
  le(other: Operand): Tensor {
    return typeof other === "number"
      ? run(id.leNumber, handleOf(this), other)
      : run(id.le, handleOf(this), handleOf(other));
  }
  gt(other: Operand): Tensor {
    return typeof other === "number"
      ? run(id.gtNumber, handleOf(this), other)
      : run(id.gt, handleOf(this), handleOf(other));
  }
  ge(other: Operand): Tensor {
    return typeof other === "number"
      ? run(id.geNumber, handleOf(this), other)
      : run(id.ge, handleOf(this), handleOf(other));
  }
  logicalAnd(other: Tensor): Tensor {
    return run(id.logicalAnd, handleOf(this), handleOf(other));
  }
  logicalOr(other: Tensor): Tensor {
    return run(id.logicalOr, handleOf(this), handleOf(other));
  }
  logicalNot(): Tensor {
    return run(id.logicalNot, handleOf(this));
  }
  /** Whether both have the same shape and equal elements. NaN is equal to nothing. */
  equal(other: Tensor): boolean {
    return native.call(id.equal, handleOf(this), handleOf(other));
  }
  allclose(other: Tensor, { rtol = 1e-5, atol = 1e-8 }: { rtol?: number; atol?: number } = {}): boolean {
    return native.call(id.allclose, handleOf(this), handleOf(other), rtol, atol);
  }

  // ---- reductions: over all elements, or over `dim` ----

  sum(dim?: Dim, { keepDim = false }: { keepDim?: boolean } = {}): Tensor {
    return dim === undefined ? run(id.sum, handleOf(this)) : run(id.sumDim, handleOf(this), dims(dim), keepDim);
  }
  mean(dim?: Dim, { keepDim = false }: { keepDim?: boolean } = {}): Tensor {
    return dim === undefined ? run(id.mean, handleOf(this)) : run(id.meanDim, handleOf(this), dims(dim), keepDim);
  }
  var(dim?: Dim, { correction = 1, keepDim = false }: { correction?: number; keepDim?: boolean } = {}): Tensor {
    return run(id.var, handleOf(this), dims(dim), correction, keepDim);
  }
  std(dim?: Dim, { correction = 1, keepDim = false }: { correction?: number; keepDim?: boolean } = {}): Tensor {
    return run(id.std, handleOf(this), dims(dim), correction, keepDim);
  }
  /** (Σ |x|^ord)^(1/ord) */
  norm(dim?: Dim, { ord = 2, keepDim = false }: { ord?: number; keepDim?: boolean } = {}): Tensor {
    return run(id.norm, handleOf(this), ord, dims(dim), keepDim);
  }
  max(): Tensor;
  max(dim: number, options?: { keepDim?: boolean }): { values: Tensor; indices: Tensor };
  max(dim?: number, { keepDim = false }: { keepDim?: boolean } = {}): Tensor | { values: Tensor; indices: Tensor } {
    return dim === undefined
      ? run(id.max, handleOf(this))
      : valuesAndIndices(runMany(id.maxDim, handleOf(this), dim, keepDim));
  }
  min(): Tensor;
  min(dim: number, options?: { keepDim?: boolean }): { values: Tensor; indices: Tensor };
  min(dim?: number, { keepDim = false }: { keepDim?: boolean } = {}): Tensor | { values: Tensor; indices: Tensor } {
    return dim === undefined
      ? run(id.min, handleOf(this))
      : valuesAndIndices(runMany(id.minDim, handleOf(this), dim, keepDim));
  }
  amax(dim?: Dim, { keepDim = false }: { keepDim?: boolean } = {}): Tensor {
    return run(id.amax, handleOf(this), dims(dim), keepDim);
  }
  amin(dim?: Dim, { keepDim = false }: { keepDim?: boolean } = {}): Tensor {
    return run(id.amin, handleOf(this), dims(dim), keepDim);
  }
  argmax(dim?: number, { keepDim = false }: { keepDim?: boolean } = {}): Tensor {
    return run(id.argmax, handleOf(this), dim, keepDim);
  }
  argmin(dim?: number, { keepDim = false }: { keepDim?: boolean } = {}): Tensor {
    return run(id.argmin, handleOf(this), dim, keepDim);
  }
  all(): Tensor {
    return run(id.all, handleOf(this));
  }
  any(): Tensor {
    return run(id.any, handleOf(this));
  }
  cumsum(dim: number): Tensor {
    return run(id.cumsum, handleOf(this), dim);
  }
  logsumexp(dim: Dim, { keepDim = false }: { keepDim?: boolean } = {}): Tensor {
    return run(id.logsumexp, handleOf(this), dims(dim), keepDim);
  }
  softmax(dim: number): Tensor {
    return run(id.softmax, handleOf(this), dim);
  }
  logSoftmax(dim: number): Tensor {
    return run(id.logSoftmax, handleOf(this), dim);
  }

  // ---- products ----

  /** (…, m, k) (…, k, n) → (…, m, n), with PyTorch's broadcasting */
  matmul(other: Tensor): Tensor {
    return run(id.matmul, handleOf(this), handleOf(other));
  }
  /** (m, k) (k, n) → (m, n) */
  mm(other: Tensor): Tensor {
    return run(id.mm, handleOf(this), handleOf(other));
  }
  /** (b, m, k) (b, k, n) → (b, m, n) */
  bmm(other: Tensor): Tensor {
    return run(id.bmm, handleOf(this), handleOf(other));
  }
  /** beta · this + alpha · a b */
  addmm(a: Tensor, b: Tensor, { beta = 1, alpha = 1 }: { beta?: number; alpha?: number } = {}): Tensor {
    return run(id.addmm, handleOf(this), handleOf(a), handleOf(b), beta, alpha);
  }
  dot(other: Tensor): Tensor {
    return run(id.dot, handleOf(this), handleOf(other));
  }
  outer(other: Tensor): Tensor {
    return run(id.outer, handleOf(this), handleOf(other));
  }

  // ---- shapes ----

  view(...shape: number[] | [readonly number[]]): Tensor {
    return run(id.view, handleOf(this), sizes(shape));
  }
  reshape(...shape: number[] | [readonly number[]]): Tensor {
    return run(id.reshape, handleOf(this), sizes(shape));
  }
  flatten(start = 0, end = -1): Tensor {
    return run(id.flatten, handleOf(this), start, end);
  }
  transpose(a: number, b: number): Tensor {
    return run(id.transpose, handleOf(this), a, b);
  }
  /** The transpose of a tensor with at most two dimensions. */
  get T(): Tensor {
    return run(id.t, handleOf(this));
  }
  /** The last two dimensions swapped. */
  get mT(): Tensor {
    return run(id.transpose, handleOf(this), -2, -1);
  }
  permute(...order: number[] | [readonly number[]]): Tensor {
    return run(id.permute, handleOf(this), sizes(order));
  }
  squeeze(dim?: number): Tensor {
    return dim === undefined ? run(id.squeeze, handleOf(this)) : run(id.squeezeDim, handleOf(this), dim);
  }
  unsqueeze(dim: number): Tensor {
    return run(id.unsqueeze, handleOf(this), dim);
  }
  expand(...shape: number[] | [readonly number[]]): Tensor {
    return run(id.expand, handleOf(this), sizes(shape));
  }
  repeat(...times: number[] | [readonly number[]]): Tensor {
    return run(id.repeat, handleOf(this), sizes(times));
  }
  narrow(dim: number, start: number, length: number): Tensor {
    return run(id.narrow, handleOf(this), dim, start, length);
  }
  select(dim: number, index: number): Tensor {
    return run(id.select, handleOf(this), dim, index);
  }
  slice(dim: number, start?: number, end?: number, step = 1): Tensor {
    return run(id.slice, handleOf(this), dim, start, end, step);
  }
  /** Parts of `size` (the last may be smaller), or of the given sizes. */
  split(size: number | readonly number[], dim = 0): Tensor[] {
    return runMany(typeof size === "number" ? id.split : id.splitSizes, handleOf(this), size, dim);
  }
  chunk(chunks: number, dim = 0): Tensor[] {
    return runMany(id.chunk, handleOf(this), chunks, dim);
  }
  unbind(dim = 0): Tensor[] {
    return runMany(id.unbind, handleOf(this), dim);
  }
  contiguous(): Tensor {
    return run(id.contiguous, handleOf(this));
  }
  flip(...order: number[] | [readonly number[]]): Tensor {
    return run(id.flip, handleOf(this), sizes(order));
  }
  tril(diagonal = 0): Tensor {
    return run(id.tril, handleOf(this), diagonal);
  }
  triu(diagonal = 0): Tensor {
    return run(id.triu, handleOf(this), diagonal);
  }
  diagonal(offset = 0): Tensor {
    return run(id.diagonal, handleOf(this), offset);
  }

  // ---- indexing ----

  indexSelect(dim: number, index: Tensor): Tensor {
    return run(id.indexSelect, handleOf(this), dim, handleOf(index));
  }
  gather(dim: number, index: Tensor): Tensor {
    return run(id.gather, handleOf(this), dim, handleOf(index));
  }
  /** `x.index([i, null, j])` is PyTorch's x[i, :, j]. */
  index(indices: readonly (Tensor | null)[]): Tensor {
    return run(
      id.index,
      handleOf(this),
      indices.map((index) => (index === null ? null : handleOf(index))),
    );
  }
  maskedFill(mask: Tensor, value: number): Tensor {
    return run(id.maskedFill, handleOf(this), handleOf(mask), value);
  }
  maskedSelect(mask: Tensor): Tensor {
    return run(id.maskedSelect, handleOf(this), handleOf(mask));
  }
  topk(
    k: number,
    dim = -1,
    { largest = true, sorted = true }: { largest?: boolean; sorted?: boolean } = {},
  ): { values: Tensor; indices: Tensor } {
    return valuesAndIndices(runMany(id.topk, handleOf(this), k, dim, largest, sorted));
  }
  sort(dim = -1, { descending = false }: { descending?: boolean } = {}): { values: Tensor; indices: Tensor } {
    return valuesAndIndices(runMany(id.sort, handleOf(this), dim, descending));
  }
  /** Random indices, with the elements as weights (any positive sum): (n) → (samples), (rows, n) → (rows, samples). */
  multinomial(samples: number, { replacement = false }: { replacement?: boolean } = {}): Tensor {
    return run(id.multinomial, handleOf(this), samples, replacement);
  }

  // ---- in place ----

  /** this ← this + alpha · other */
  add_(other: Operand, { alpha = 1 }: { alpha?: number } = {}): this {
    if (typeof other === "number") native.call(id.addNumber_, handleOf(this), other, alpha);
    else native.call(id.add_, handleOf(this), handleOf(other), alpha);
    return this;
  }
  /** this ← this − alpha · other */
  sub_(other: Operand, { alpha = 1 }: { alpha?: number } = {}): this {
    if (typeof other === "number") native.call(id.subNumber_, handleOf(this), other, alpha);
    else native.call(id.sub_, handleOf(this), handleOf(other), alpha);
    return this;
  }
  mul_(other: Operand): this {
    if (typeof other === "number") native.call(id.mulNumber_, handleOf(this), other);
    else native.call(id.mul_, handleOf(this), handleOf(other));
    return this;
  }
  div_(other: Operand): this {
    if (typeof other === "number") native.call(id.divNumber_, handleOf(this), other);
    else native.call(id.div_, handleOf(this), handleOf(other));
    return this;
  }
  /** this ← beta · this + alpha · a b */
  addmm_(a: Tensor, b: Tensor, { beta = 1, alpha = 1 }: { beta?: number; alpha?: number } = {}): this {
    native.call(id.addmm_, handleOf(this), handleOf(a), handleOf(b), beta, alpha);
    return this;
  }
  /** this ← this + value · a ⊙ b */
  addcmul_(a: Tensor, b: Tensor, { value = 1 }: { value?: number } = {}): this {
    native.call(id.addcmul_, handleOf(this), handleOf(a), handleOf(b), value);
    return this;
  }
  /** this ← this + value · a ⊘ b */
  addcdiv_(a: Tensor, b: Tensor, { value = 1 }: { value?: number } = {}): this {
    native.call(id.addcdiv_, handleOf(this), handleOf(a), handleOf(b), value);
    return this;
  }
  /** this ← this + weight · (end − this) */
  lerp_(end: Tensor, weight: number): this {
    native.call(id.lerp_, handleOf(this), handleOf(end), weight);
    return this;
  }
  /** this ← source, broadcast and converted */
  copy_(source: Tensor): this {
    native.call(id.copy_, handleOf(this), handleOf(source));
    return this;
  }
  zero_(): this {
    native.call(id.zero_, handleOf(this));
    return this;
  }
  fill_(value: number): this {
    native.call(id.fill_, handleOf(this), value);
    return this;
  }
  neg_(): this {
    native.call(id.neg_, handleOf(this));
    return this;
  }
  sqrt_(): this {
    native.call(id.sqrt_, handleOf(this));
    return this;
  }
  relu_(): this {
    native.call(id.relu_, handleOf(this));
    return this;
  }
  clamp_({ min, max }: { min?: number; max?: number }): this {
    native.call(id.clamp_, handleOf(this), min, max);
    return this;
  }
  maskedFill_(mask: Tensor, value: number): this {
    native.call(id.maskedFill_, handleOf(this), handleOf(mask), value);
    return this;
  }
  normal_({ mean = 0, std = 1 }: { mean?: number; std?: number } = {}): this {
    native.call(id.normal_, handleOf(this), mean, std);
    return this;
  }
  /** Uniform in [from, to). */
  uniform_(from = 0, to = 1): this {
    native.call(id.uniform_, handleOf(this), from, to);
    return this;
  }
  bernoulli_(p = 0.5): this {
    native.call(id.bernoulli_, handleOf(this), p);
    return this;
  }
}

function valuesAndIndices(pair: Tensor[]): { values: Tensor; indices: Tensor } {
  return { values: pair[0]!, indices: pair[1]! };
}

/** Concatenates tensors along an existing dimension. */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  return run(id.cat, tensors.map(handleOf), dim);
}

/** Concatenates tensors along a new dimension. */
export function stack(tensors: readonly Tensor[], dim = 0): Tensor {
  return run(id.stack, tensors.map(handleOf), dim);
}

/** The elements of a where the condition is true, else those of b. */
export function where(condition: Tensor, a: Tensor, b: Tensor): Tensor {
  return run(id.where, handleOf(condition), handleOf(a), handleOf(b));
}
