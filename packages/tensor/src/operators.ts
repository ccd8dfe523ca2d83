/**
 * Operators of libtorch as methods, with PyTorch's names in camelCase. A trailing `_` writes in place. Every method is
 * one ATen operator; use `call("aten::name.overload", …)` for any other operator.
 */
import type { Handle } from "@terse/native-tensor";
import { handleOf, type Resource } from "./lifetime.ts";

/** One dimension or several; −1 is the last one. */
export type Dim = number | readonly number[];

type Sizes = number[] | [readonly number[]];
type KeepDim = { keepDim?: boolean };
type ValuesAndIndices<T> = { values: T; indices: T };

/**
 * The methods, for tensors of class T. As a scalar, a JavaScript integer is an integer: an i64 tensor plus 1 stays i64.
 */
export interface Operators<T> {
  // ---- element by element ----

  /** this + alpha · other */
  add(other: T | number, options?: { alpha?: number }): T;
  /** this − alpha · other */
  sub(other: T | number, options?: { alpha?: number }): T;
  /** other − this */
  rsub(other: number): T;
  mul(other: T | number): T;
  div(other: T | number, options?: { rounding?: "trunc" | "floor" }): T;
  pow(exponent: T | number): T;
  maximum(other: T): T;
  minimum(other: T): T;
  /** this + value · a ⊙ b */
  addcmul(a: T, b: T, options?: { value?: number }): T;
  /** this + value · a ⊘ b */
  addcdiv(a: T, b: T, options?: { value?: number }): T;
  /** this + weight · (end − this) */
  lerp(end: T, weight: number): T;
  clamp(limits: { min?: number; max?: number }): T;
  neg(): T;
  abs(): T;
  sign(): T;
  exp(): T;
  log(): T;
  sqrt(): T;
  rsqrt(): T;
  reciprocal(): T;
  square(): T;
  sin(): T;
  cos(): T;
  tanh(): T;
  sigmoid(): T;
  relu(): T;
  /** x · σ(x) */
  silu(): T;
  gelu(options?: { approximate?: "none" | "tanh" }): T;
  floor(): T;
  ceil(): T;
  /** Rounded to the nearest integer, half to even. */
  round(): T;
  isfinite(): T;
  isnan(): T;

  // ---- comparisons: bool tensors ----

  eq(other: T | number): T;
  ne(other: T | number): T;
  lt(other: T | number): T;
  le(other: T | number): T;
  gt(other: T | number): T;
  ge(other: T | number): T;
  logicalAnd(other: T): T;
  logicalOr(other: T): T;
  logicalNot(): T;
  /** Whether both have the same shape and equal elements. NaN is equal to nothing. */
  equal(other: T): boolean;
  allclose(other: T, options?: { rtol?: number; atol?: number }): boolean;

  // ---- reductions: over all elements, or over `dim` ----

  sum(dim?: Dim, options?: KeepDim): T;
  mean(dim?: Dim, options?: KeepDim): T;
  var(dim?: Dim, options?: { correction?: number } & KeepDim): T;
  std(dim?: Dim, options?: { correction?: number } & KeepDim): T;
  /** (Σ |x|^ord)^(1/ord) */
  norm(dim?: Dim, options?: { ord?: number } & KeepDim): T;
  max(): T;
  max(dim: number, options?: KeepDim): ValuesAndIndices<T>;
  min(): T;
  min(dim: number, options?: KeepDim): ValuesAndIndices<T>;
  amax(dim?: Dim, options?: KeepDim): T;
  amin(dim?: Dim, options?: KeepDim): T;
  argmax(dim?: number, options?: KeepDim): T;
  argmin(dim?: number, options?: KeepDim): T;
  all(): T;
  any(): T;
  cumsum(dim: number): T;
  logsumexp(dim: Dim, options?: KeepDim): T;
  softmax(dim: number): T;
  logSoftmax(dim: number): T;

  // ---- products ----

  /** (…, m, k) (…, k, n) → (…, m, n), with PyTorch's broadcasting */
  matmul(other: T): T;
  /** (m, k) (k, n) → (m, n) */
  mm(other: T): T;
  /** (b, m, k) (b, k, n) → (b, m, n) */
  bmm(other: T): T;
  /** beta · this + alpha · a b */
  addmm(a: T, b: T, options?: { beta?: number; alpha?: number }): T;
  dot(other: T): T;
  outer(other: T): T;

  // ---- shapes ----

  view(...shape: Sizes): T;
  reshape(...shape: Sizes): T;
  flatten(start?: number, end?: number): T;
  transpose(a: number, b: number): T;
  permute(...order: Sizes): T;
  squeeze(dim?: number): T;
  unsqueeze(dim: number): T;
  expand(...shape: Sizes): T;
  repeat(...times: Sizes): T;
  narrow(dim: number, start: number, length: number): T;
  select(dim: number, index: number): T;
  slice(dim: number, start?: number, end?: number, step?: number): T;
  /** Parts of `size` (the last may be smaller), or of the given sizes. */
  split(size: number | readonly number[], dim?: number): T[];
  chunk(chunks: number, dim?: number): T[];
  unbind(dim?: number): T[];
  contiguous(): T;
  flip(...order: Sizes): T;
  tril(diagonal?: number): T;
  triu(diagonal?: number): T;
  diagonal(offset?: number): T;
  clone(): T;
  detach(): T;

  // ---- indexing ----

  indexSelect(dim: number, index: T): T;
  gather(dim: number, index: T): T;
  /** `x.index([i, null, j])` is PyTorch's x[i, :, j]. */
  index(indices: readonly (T | null)[]): T;
  maskedFill(mask: T, value: number): T;
  maskedSelect(mask: T): T;
  topk(k: number, dim?: number, options?: { largest?: boolean; sorted?: boolean }): ValuesAndIndices<T>;
  sort(dim?: number, options?: { descending?: boolean }): ValuesAndIndices<T>;
  /** Random indices, with the elements as weights (any positive sum): (n) → (samples), (rows, n) → (rows, samples). */
  multinomial(samples: number, options?: { replacement?: boolean }): T;

  // ---- in place ----

  /** this ← this + alpha · other */
  add_(other: T | number, options?: { alpha?: number }): this;
  /** this ← this − alpha · other */
  sub_(other: T | number, options?: { alpha?: number }): this;
  mul_(other: T | number): this;
  div_(other: T | number): this;
  /** this ← beta · this + alpha · a b */
  addmm_(a: T, b: T, options?: { beta?: number; alpha?: number }): this;
  /** this ← this + value · a ⊙ b */
  addcmul_(a: T, b: T, options?: { value?: number }): this;
  /** this ← this + value · a ⊘ b */
  addcdiv_(a: T, b: T, options?: { value?: number }): this;
  /** this ← this + weight · (end − this) */
  lerp_(end: T, weight: number): this;
  /** this ← source, broadcast and converted */
  copy_(source: T): this;
  zero_(): this;
  fill_(value: number): this;
  neg_(): this;
  sqrt_(): this;
  relu_(): this;
  clamp_(limits: { min?: number; max?: number }): this;
  maskedFill_(mask: T, value: number): this;
  normal_(options?: { mean?: number; std?: number }): this;
  /** this ← random numbers, uniform in [from, to) */
  uniform_(from?: number, to?: number): this;
  bernoulli_(p?: number): this;
}

/** An ATen operator, and its arguments after the tensor: a handle for each tensor, undefined for the default. */
type Call = readonly [operator: string, ...values: readonly unknown[]];

type Methods = Operators<Resource>;

const overload = (name: string, other: Resource | number): string =>
  typeof other === "number" ? `${name}.Scalar` : `${name}.Tensor`;
const operand = (other: Resource | number): Handle | number => (typeof other === "number" ? other : handleOf(other));
const dims = (dim: Dim | undefined): readonly number[] | undefined => (typeof dim === "number" ? [dim] : dim);
const sizes = (shape: Sizes): readonly number[] =>
  (shape.length === 1 && typeof shape[0] === "object" ? shape[0] : shape) as readonly number[];

/** The options of the methods that have some, and which argument they are. */
export const optionsOf: { readonly [Name in keyof Methods]?: readonly [argument: number, ...names: string[]] } = {
  add: [1, "alpha"],
  sub: [1, "alpha"],
  div: [1, "rounding"],
  addcmul: [2, "value"],
  addcdiv: [2, "value"],
  clamp: [0, "min", "max"],
  gelu: [0, "approximate"],
  allclose: [1, "rtol", "atol"],
  sum: [1, "keepDim"],
  mean: [1, "keepDim"],
  var: [1, "correction", "keepDim"],
  std: [1, "correction", "keepDim"],
  norm: [1, "ord", "keepDim"],
  max: [1, "keepDim"],
  min: [1, "keepDim"],
  amax: [1, "keepDim"],
  amin: [1, "keepDim"],
  argmax: [1, "keepDim"],
  argmin: [1, "keepDim"],
  logsumexp: [1, "keepDim"],
  addmm: [2, "beta", "alpha"],
  topk: [2, "largest", "sorted"],
  sort: [1, "descending"],
  multinomial: [1, "replacement"],
  add_: [1, "alpha"],
  sub_: [1, "alpha"],
  addmm_: [2, "beta", "alpha"],
  addcmul_: [2, "value"],
  addcdiv_: [2, "value"],
  clamp_: [0, "min", "max"],
  normal_: [0, "mean", "std"],
};

/** What each method calls. */
export const operators: { readonly [Name in keyof Methods]: (...args: Parameters<Methods[Name]>) => Call } = {
  add: (other, { alpha } = {}) => [overload("add", other), operand(other), alpha],
  sub: (other, { alpha } = {}) => [overload("sub", other), operand(other), alpha],
  rsub: (other) => ["rsub.Scalar", other],
  mul: (other) => [overload("mul", other), operand(other)],
  div: (other, { rounding } = {}) =>
    rounding === undefined
      ? [overload("div", other), operand(other)]
      : [`${overload("div", other)}_mode`, operand(other), rounding],
  pow: (exponent) => [`pow.Tensor_${typeof exponent === "number" ? "Scalar" : "Tensor"}`, operand(exponent)],
  maximum: (other) => ["maximum", handleOf(other)],
  minimum: (other) => ["minimum", handleOf(other)],
  addcmul: (a, b, { value } = {}) => ["addcmul", handleOf(a), handleOf(b), value],
  addcdiv: (a, b, { value } = {}) => ["addcdiv", handleOf(a), handleOf(b), value],
  lerp: (end, weight) => ["lerp.Scalar", handleOf(end), weight],
  clamp: ({ min, max } = {}) => ["clamp", min, max],
  neg: () => ["neg"],
  abs: () => ["abs"],
  sign: () => ["sign"],
  exp: () => ["exp"],
  log: () => ["log"],
  sqrt: () => ["sqrt"],
  rsqrt: () => ["rsqrt"],
  reciprocal: () => ["reciprocal"],
  square: () => ["square"],
  sin: () => ["sin"],
  cos: () => ["cos"],
  tanh: () => ["tanh"],
  sigmoid: () => ["sigmoid"],
  relu: () => ["relu"],
  silu: () => ["silu"],
  gelu: ({ approximate } = {}) => ["gelu", approximate],
  floor: () => ["floor"],
  ceil: () => ["ceil"],
  round: () => ["round"],
  isfinite: () => ["isfinite"],
  isnan: () => ["isnan"],

  eq: (other) => [overload("eq", other), operand(other)],
  ne: (other) => [overload("ne", other), operand(other)],
  lt: (other) => [overload("lt", other), operand(other)],
  le: (other) => [overload("le", other), operand(other)],
  gt: (other) => [overload("gt", other), operand(other)],
  ge: (other) => [overload("ge", other), operand(other)],
  logicalAnd: (other) => ["logical_and", handleOf(other)],
  logicalOr: (other) => ["logical_or", handleOf(other)],
  logicalNot: () => ["logical_not"],
  equal: (other) => ["equal", handleOf(other)],
  allclose: (other, { rtol, atol } = {}) => ["allclose", handleOf(other), rtol, atol],

  sum: (dim, { keepDim } = {}) => (dim === undefined ? ["sum"] : ["sum.dim_IntList", dims(dim), keepDim]),
  mean: (dim, { keepDim } = {}) => (dim === undefined ? ["mean"] : ["mean.dim", dims(dim), keepDim]),
  var: (dim, { correction, keepDim } = {}) => ["var.correction", dims(dim), correction, keepDim],
  std: (dim, { correction, keepDim } = {}) => ["std.correction", dims(dim), correction, keepDim],
  norm: (dim, { ord, keepDim } = {}) => ["linalg_vector_norm", ord, dims(dim), keepDim],
  max: (dim?: number, { keepDim }: KeepDim = {}) => (dim === undefined ? ["max"] : ["max.dim", dim, keepDim]),
  min: (dim?: number, { keepDim }: KeepDim = {}) => (dim === undefined ? ["min"] : ["min.dim", dim, keepDim]),
  amax: (dim, { keepDim } = {}) => ["amax", dims(dim), keepDim],
  amin: (dim, { keepDim } = {}) => ["amin", dims(dim), keepDim],
  argmax: (dim, { keepDim } = {}) => ["argmax", dim, keepDim],
  argmin: (dim, { keepDim } = {}) => ["argmin", dim, keepDim],
  all: () => ["all"],
  any: () => ["any"],
  cumsum: (dim) => ["cumsum", dim],
  logsumexp: (dim, { keepDim } = {}) => ["logsumexp", dims(dim), keepDim],
  softmax: (dim) => ["softmax.int", dim],
  logSoftmax: (dim) => ["log_softmax.int", dim],

  matmul: (other) => ["matmul", handleOf(other)],
  mm: (other) => ["mm", handleOf(other)],
  bmm: (other) => ["bmm", handleOf(other)],
  addmm: (a, b, { beta, alpha } = {}) => ["addmm", handleOf(a), handleOf(b), beta, alpha],
  dot: (other) => ["dot", handleOf(other)],
  outer: (other) => ["outer", handleOf(other)],

  view: (...shape) => ["view", sizes(shape)],
  reshape: (...shape) => ["reshape", sizes(shape)],
  flatten: (start, end) => ["flatten.using_ints", start, end],
  transpose: (a, b) => ["transpose.int", a, b],
  permute: (...order) => ["permute", sizes(order)],
  squeeze: (dim) => (dim === undefined ? ["squeeze"] : ["squeeze.dim", dim]),
  unsqueeze: (dim) => ["unsqueeze", dim],
  expand: (...shape) => ["expand", sizes(shape)],
  repeat: (...times) => ["repeat", sizes(times)],
  narrow: (dim, start, length) => ["narrow", dim, start, length],
  select: (dim, index) => ["select.int", dim, index],
  slice: (dim, start, end, step) => ["slice.Tensor", dim, start, end, step],
  split: (size, dim) => [typeof size === "number" ? "split.Tensor" : "split_with_sizes", size, dim],
  chunk: (chunks, dim) => ["chunk", chunks, dim],
  unbind: (dim) => ["unbind.int", dim],
  contiguous: () => ["contiguous"],
  flip: (...order) => ["flip", sizes(order)],
  tril: (diagonal) => ["tril", diagonal],
  triu: (diagonal) => ["triu", diagonal],
  diagonal: (offset) => ["diagonal", offset],
  clone: () => ["clone"],
  detach: () => ["detach"],

  indexSelect: (dim, index) => ["index_select", dim, handleOf(index)],
  gather: (dim, index) => ["gather", dim, handleOf(index)],
  index: (indices) => ["index.Tensor", indices.map((index) => index && handleOf(index))],
  maskedFill: (mask, value) => ["masked_fill.Scalar", handleOf(mask), value],
  maskedSelect: (mask) => ["masked_select", handleOf(mask)],
  topk: (k, dim, { largest, sorted } = {}) => ["topk", k, dim, largest, sorted],
  sort: (dim, { descending } = {}) => ["sort", dim, descending],
  multinomial: (samples, { replacement } = {}) => ["multinomial", samples, replacement],

  add_: (other, { alpha } = {}) => [overload("add_", other), operand(other), alpha],
  sub_: (other, { alpha } = {}) => [overload("sub_", other), operand(other), alpha],
  mul_: (other) => [overload("mul_", other), operand(other)],
  div_: (other) => [overload("div_", other), operand(other)],
  addmm_: (a, b, { beta, alpha } = {}) => ["addmm_", handleOf(a), handleOf(b), beta, alpha],
  addcmul_: (a, b, { value } = {}) => ["addcmul_", handleOf(a), handleOf(b), value],
  addcdiv_: (a, b, { value } = {}) => ["addcdiv_", handleOf(a), handleOf(b), value],
  lerp_: (end, weight) => ["lerp_.Scalar", handleOf(end), weight],
  copy_: (source) => ["copy_", handleOf(source)],
  zero_: () => ["zero_"],
  fill_: (value) => ["fill_.Scalar", value],
  neg_: () => ["neg_"],
  sqrt_: () => ["sqrt_"],
  relu_: () => ["relu_"],
  clamp_: ({ min, max } = {}) => ["clamp_", min, max],
  maskedFill_: (mask, value) => ["masked_fill_.Scalar", handleOf(mask), value],
  normal_: ({ mean, std } = {}) => ["normal_", mean, std],
  uniform_: (from, to) => ["uniform_", from, to],
  bernoulli_: (p) => ["bernoulli_.float", p],
};
