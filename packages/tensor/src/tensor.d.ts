/**
 * Tensors of libtorch, with PyTorch's names in camelCase. A trailing `_` writes in place. Every method is one ATen operator; use
 * `call("aten::name.overload", …)` for any other operator.
 *
 * As a scalar, a JavaScript integer is an integer for libtorch: an i64 tensor plus 1 stays i64, an f32 tensor stays f32.
 */
import { inspect } from "node:util";
import { type DType, type NativeBuffer, type RetainedBuffer, type TypedArray } from "@terse/native-tensor";
import { Resource } from "./lifetime.ts";
export type Dim = number | readonly number[];
export type Operand = Tensor | number;
export declare class Tensor extends Resource implements Disposable, NativeBuffer {
    get shape(): readonly number[];
    get strides(): readonly number[];
    get dtype(): DType;
    /** "cpu", "cuda:0" */
    get device(): string;
    /** Number of elements. */
    get length(): number;
    /** Address of the first element. RangeError when the tensor is not contiguous. */
    get pointer(): bigint;
    /** Keeps the memory at its address until `release`, even if the tensor is disposed. Collectives call it. */
    retain(): RetainedBuffer;
    get isContiguous(): boolean;
    get isLeaf(): boolean;
    get requiresGrad(): boolean;
    set requiresGrad(wanted: boolean);
    /** The accumulated gradient. Each read gives a new Tensor object with the same memory. */
    get grad(): Tensor | null;
    set grad(gradient: Tensor | null);
    /**
     * Adds the gradient of this tensor to the `.grad` of every leaf. The tensor has one element, or `gradient` has its shape. Runs on another
     * thread; several calls run in order. Do not use the leaves and their gradients until the promise settles. Rejects with TensorError.
     */
    backward({ gradient, retainGraph }?: {
        gradient?: Tensor;
        retainGraph?: boolean;
    }): Promise<void>;
    /** The value of a tensor with one element. Waits for the device. An i64 beyond ±(2^53 − 1) is a RangeError; read it by `toTypedArray()`. */
    item(): number;
    /**
     * A copy of the elements in row-major order, with their values at the time of the call. i64 gives a BigInt64Array, bool a Uint8Array, bf16
     * and f16 a Uint16Array of their bits.
     */
    toTypedArray(): Promise<TypedArray>;
    /** Frees the memory, unless a view or autograd still uses it. A second call does nothing. */
    dispose(): void;
    [Symbol.dispose](): void;
    /** See {@link keep}. */
    keep(): this;
    [inspect.custom](): string;
    toString(): string;
    /** Converts to another dtype, another device, or both. Shares the memory if nothing changes. */
    to(target: {
        dtype?: DType;
        device?: string;
    } | DType): Tensor;
    clone(): Tensor;
    detach(): Tensor;
    /** this + alpha · other */
    add(other: Operand, { alpha }?: {
        alpha?: number;
    }): Tensor;
    /** this − alpha · other */
    sub(other: Operand, { alpha }?: {
        alpha?: number;
    }): Tensor;
    /** other − this */
    rsub(other: number): Tensor;
    mul(other: Operand): Tensor;
    div(other: Operand, { rounding }?: {
        rounding?: "trunc" | "floor";
    }): Tensor;
    pow(exponent: Operand): Tensor;
    maximum(other: Tensor): Tensor;
    minimum(other: Tensor): Tensor;
    /** this + value · a ⊙ b */
    addcmul(a: Tensor, b: Tensor, { value }?: {
        value?: number;
    }): Tensor;
    /** this + value · a ⊘ b */
    addcdiv(a: Tensor, b: Tensor, { value }?: {
        value?: number;
    }): Tensor;
    /** this + weight · (end − this) */
    lerp(end: Tensor, weight: number): Tensor;
    clamp({ min, max }: {
        min?: number;
        max?: number;
    }): Tensor;
    neg(): Tensor;
    abs(): Tensor;
    sign(): Tensor;
    exp(): Tensor;
    log(): Tensor;
    sqrt(): Tensor;
    rsqrt(): Tensor;
    reciprocal(): Tensor;
    square(): Tensor;
    sin(): Tensor;
    cos(): Tensor;
    tanh(): Tensor;
    sigmoid(): Tensor;
    relu(): Tensor;
    /** x · σ(x) */
    silu(): Tensor;
    gelu({ approximate }?: {
        approximate?: "none" | "tanh";
    }): Tensor;
    floor(): Tensor;
    ceil(): Tensor;
    /** Half to even. */
    round(): Tensor;
    isfinite(): Tensor;
    isnan(): Tensor;
    eq(other: Operand): Tensor;
    ne(other: Operand): Tensor;
    lt(other: Operand): Tensor;
    le(other: Operand): Tensor;
    gt(other: Operand): Tensor;
    ge(other: Operand): Tensor;
    logicalAnd(other: Tensor): Tensor;
    logicalOr(other: Tensor): Tensor;
    logicalNot(): Tensor;
    /** Whether both have the same shape and equal elements. NaN is equal to nothing. */
    equal(other: Tensor): boolean;
    allclose(other: Tensor, { rtol, atol }?: {
        rtol?: number;
        atol?: number;
    }): boolean;
    sum(dim?: Dim, { keepDim }?: {
        keepDim?: boolean;
    }): Tensor;
    mean(dim?: Dim, { keepDim }?: {
        keepDim?: boolean;
    }): Tensor;
    var(dim?: Dim, { correction, keepDim }?: {
        correction?: number;
        keepDim?: boolean;
    }): Tensor;
    std(dim?: Dim, { correction, keepDim }?: {
        correction?: number;
        keepDim?: boolean;
    }): Tensor;
    /** (Σ |x|^ord)^(1/ord) */
    norm(dim?: Dim, { ord, keepDim }?: {
        ord?: number;
        keepDim?: boolean;
    }): Tensor;
    max(): Tensor;
    max(dim: number, options?: {
        keepDim?: boolean;
    }): {
        values: Tensor;
        indices: Tensor;
    };
    min(): Tensor;
    min(dim: number, options?: {
        keepDim?: boolean;
    }): {
        values: Tensor;
        indices: Tensor;
    };
    amax(dim?: Dim, { keepDim }?: {
        keepDim?: boolean;
    }): Tensor;
    amin(dim?: Dim, { keepDim }?: {
        keepDim?: boolean;
    }): Tensor;
    argmax(dim?: number, { keepDim }?: {
        keepDim?: boolean;
    }): Tensor;
    argmin(dim?: number, { keepDim }?: {
        keepDim?: boolean;
    }): Tensor;
    all(): Tensor;
    any(): Tensor;
    cumsum(dim: number): Tensor;
    logsumexp(dim: Dim, { keepDim }?: {
        keepDim?: boolean;
    }): Tensor;
    softmax(dim: number): Tensor;
    logSoftmax(dim: number): Tensor;
    /** (…, m, k) (…, k, n) → (…, m, n), with PyTorch's broadcasting */
    matmul(other: Tensor): Tensor;
    /** (m, k) (k, n) → (m, n) */
    mm(other: Tensor): Tensor;
    /** (b, m, k) (b, k, n) → (b, m, n) */
    bmm(other: Tensor): Tensor;
    /** beta · this + alpha · a b */
    addmm(a: Tensor, b: Tensor, { beta, alpha }?: {
        beta?: number;
        alpha?: number;
    }): Tensor;
    dot(other: Tensor): Tensor;
    outer(other: Tensor): Tensor;
    view(...shape: number[] | [readonly number[]]): Tensor;
    reshape(...shape: number[] | [readonly number[]]): Tensor;
    flatten(start?: number, end?: number): Tensor;
    transpose(a: number, b: number): Tensor;
    /** The transpose of a tensor with at most two dimensions. */
    get T(): Tensor;
    /** The last two dimensions swapped. */
    get mT(): Tensor;
    permute(...order: number[] | [readonly number[]]): Tensor;
    squeeze(dim?: number): Tensor;
    unsqueeze(dim: number): Tensor;
    expand(...shape: number[] | [readonly number[]]): Tensor;
    repeat(...times: number[] | [readonly number[]]): Tensor;
    narrow(dim: number, start: number, length: number): Tensor;
    select(dim: number, index: number): Tensor;
    slice(dim: number, start?: number, end?: number, step?: number): Tensor;
    /** Parts of `size` (the last may be smaller), or of the given sizes. */
    split(size: number | readonly number[], dim?: number): Tensor[];
    chunk(chunks: number, dim?: number): Tensor[];
    unbind(dim?: number): Tensor[];
    contiguous(): Tensor;
    flip(...order: number[] | [readonly number[]]): Tensor;
    tril(diagonal?: number): Tensor;
    triu(diagonal?: number): Tensor;
    diagonal(offset?: number): Tensor;
    indexSelect(dim: number, index: Tensor): Tensor;
    gather(dim: number, index: Tensor): Tensor;
    /** `x.index([i, null, j])` is PyTorch's x[i, :, j]. */
    index(indices: readonly (Tensor | null)[]): Tensor;
    maskedFill(mask: Tensor, value: number): Tensor;
    maskedSelect(mask: Tensor): Tensor;
    topk(k: number, dim?: number, { largest, sorted }?: {
        largest?: boolean;
        sorted?: boolean;
    }): {
        values: Tensor;
        indices: Tensor;
    };
    sort(dim?: number, { descending }?: {
        descending?: boolean;
    }): {
        values: Tensor;
        indices: Tensor;
    };
    /** Random indices, with the elements as weights (any positive sum): (n) → (samples), (rows, n) → (rows, samples). */
    multinomial(samples: number, { replacement }?: {
        replacement?: boolean;
    }): Tensor;
    /** this ← this + alpha · other */
    add_(other: Operand, { alpha }?: {
        alpha?: number;
    }): this;
    /** this ← this − alpha · other */
    sub_(other: Operand, { alpha }?: {
        alpha?: number;
    }): this;
    mul_(other: Operand): this;
    div_(other: Operand): this;
    /** this ← beta · this + alpha · a b */
    addmm_(a: Tensor, b: Tensor, { beta, alpha }?: {
        beta?: number;
        alpha?: number;
    }): this;
    /** this ← this + value · a ⊙ b */
    addcmul_(a: Tensor, b: Tensor, { value }?: {
        value?: number;
    }): this;
    /** this ← this + value · a ⊘ b */
    addcdiv_(a: Tensor, b: Tensor, { value }?: {
        value?: number;
    }): this;
    /** this ← this + weight · (end − this) */
    lerp_(end: Tensor, weight: number): this;
    /** this ← source, broadcast and converted */
    copy_(source: Tensor): this;
    zero_(): this;
    fill_(value: number): this;
    neg_(): this;
    sqrt_(): this;
    clamp_({ min, max }: {
        min?: number;
        max?: number;
    }): this;
    maskedFill_(mask: Tensor, value: number): this;
    normal_({ mean, std }?: {
        mean?: number;
        std?: number;
    }): this;
    /** Uniform in [from, to). */
    uniform_(from?: number, to?: number): this;
    bernoulli_(p?: number): this;
}
/** Concatenates tensors along an existing dimension. */
export declare function cat(tensors: readonly Tensor[], dim?: number): Tensor;
/** Concatenates tensors along a new dimension. */
export declare function stack(tensors: readonly Tensor[], dim?: number): Tensor;
/** The elements of a where the condition is true, else those of b. */
export declare function where(condition: Tensor, a: Tensor, b: Tensor): Tensor;
