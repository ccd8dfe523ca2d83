/** The arrays of the contract's tests: every type, its numbers, and the expected results in plain TypeScript. */
import { type BufferLike, collectives } from "@terse/native-collectives";
import type { Reduction } from "../../group.ts";

export const mebibyte = 1 << 20;
export type Numbers = Uint8Array | Int8Array | Int16Array | Int32Array | Float32Array | Float64Array;
export type Storage = Numbers | BigInt64Array | Uint16Array;

/** An array of one type: the memory that the group gets, the numbers in it, and its storage. */
export interface Values {
  readonly memory: BufferLike;
  readonly array: Storage;
  read(): number[];
}
export interface Type {
  readonly name: string;
  readonly bytes: number;
  /** An array of `length`, which repeats the numbers where it is longer. */
  make(numbers: readonly number[], length?: number): Values;
}

/** Repeats the first `beginning` elements of x through the rest of it. */
function repeat<T extends Storage>(x: T, beginning: number): T {
  for (let done = beginning; done < x.length; done *= 2) x.copyWithin(done, 0, done);
  return x;
}

function typed(
  name: string,
  Type: new (length: number) => Numbers | BigInt64Array,
  store: (x: number) => number | bigint = (x) => x,
): Type {
  const make = (numbers: readonly number[], length = numbers.length) => {
    const memory = new Type(length);
    const elements = memory as { [i: number]: number | bigint };
    for (let i = 0; i < Math.min(length, numbers.length); i++) elements[i] = store(numbers[i]!);
    return { memory, array: repeat(memory, numbers.length), read: () => Array.from(memory, Number) };
  };
  return { name, bytes: new Type(0).BYTES_PER_ELEMENT, make };
}

/** 16-bit floats, for numbers that they hold exactly: the upper bits of an f32, with a smaller exponent for f16. */
function halves(dtype: "f16" | "bf16"): Type {
  const [shift, bias] = dtype === "f16" ? [13, 112 << 10] : [16, 0];
  const bits = new Uint32Array(1);
  const float = new Float32Array(bits.buffer);
  const pack = (x: number) => {
    float[0] = Math.abs(x);
    return (x < 0 ? 0x8000 : 0) | (x === 0 ? 0 : (bits[0]! >>> shift) - bias);
  };
  const unpack = (half: number) => {
    bits[0] = (half & 0x7fff) === 0 ? 0 : ((half & 0x7fff) + bias) << shift;
    return half & 0x8000 ? -float[0]! : float[0]!;
  };
  const make = (numbers: readonly number[], length = numbers.length) => {
    const array = new Uint16Array(length);
    array.set(numbers.slice(0, length).map(pack));
    repeat(array, numbers.length);
    const memory = { pointer: collectives().addressOf(array), length, dtype, device: "cpu", array };
    return { memory, array, read: () => Array.from(array, unpack) };
  };
  return { name: dtype, bytes: 2, make };
}

export const types: readonly Type[] = [
  typed("u8", Uint8Array),
  typed("i8", Int8Array),
  typed("i16", Int16Array),
  typed("i32", Int32Array),
  typed("i64", BigInt64Array, BigInt),
  halves("f16"),
  halves("bf16"),
  typed("f32", Float32Array),
  typed("f64", Float64Array),
];

const combine: Record<Exclude<Reduction, "mean">, (a: number, b: number) => number> = {
  sum: (a, b) => a + b,
  prod: (a, b) => a * b,
  min: Math.min,
  max: Math.max,
};

/**
 * The expected result of a reduction: rank by rank, stored in the type itself after every step, so that integers wrap.
 */
export function reduced(type: Type, op: Reduction, ranks: readonly number[][]): number[] {
  const kept = ranks.map((numbers) => type.make(numbers).read());
  const step = combine[op === "mean" ? "sum" : op];
  const all = kept.reduce((sum, x) => type.make(sum.map((each, i) => step(each, x[i]!))).read());
  return op === "mean" ? all.map((sum) => sum / ranks.length) : all;
}

/**
 * Element i of rank r among n: whole numbers on both sides of 0 whose sums no type rounds, in any order. Products are
 * powers of two, and the mean of all ranks is whole.
 */
export function operand(op: Reduction, rank: number, n: number, i: number): number {
  const salt = (i * 7 + rank * 3 + (i >> 8)) % 5;
  if (op === "prod") return salt % 2 === 0 ? 2 : -1;
  return op === "mean" ? 2 * rank - (n - 1) + (i % 7) : salt - 2;
}

export const period = 1280;

/** Element i is f(i). f must have the period `period`, as `value` does, because most of a long array is copied. */
export function filled<T extends Numbers>(
  Type: new (length: number) => T,
  length: number,
  f: (i: number) => number,
): T {
  const x = new Type(length);
  for (let i = 0; i < Math.min(length, period); i++) x[i] = f(i);
  return repeat(x, period);
}

/** Small whole numbers of period 5 · 256. */
export const value = (rank: number, i: number) => ((i * 7 + rank * 3 + (i >> 8)) % 5) + 1;

/** The sum of `value` over all ranks. */
export function total(ranks: number, i: number): number {
  let sum = 0;
  for (let rank = 0; rank < ranks; rank++) sum += value(rank, i);
  return sum;
}

/** Numbers whose sum depends on the order. */
export const rough = (rank: number, i: number) =>
  Math.fround(Math.sin(i * 12.9898 + rank * 78.233) * 2 ** ((i + rank) % 20));

/** Lengths at which errors are likely: 0, and those around the number of ranks and the bytes and bits of a word. */
export const lengthsFor = (n: number) => [...new Set([0, 1, n - 1, n, n + 1, 2 * n + 1, 7, 8, 9, 63, 64, 65, 257])];

/**
 * All cases for small worlds. For larger ones a part of them that depends on n, so that several worlds run each case.
 */
export const sample = <T>(all: readonly T[], n: number) => (n <= 3 ? all : all.filter((_, i) => i % 4 === n % 4));

export function bytesOf(x: Storage): Uint8Array {
  return new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
}
