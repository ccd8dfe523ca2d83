/**
 * dct-top-k: of the orthonormal DCT-II of each chunk, the k coefficients of largest magnitude, with their places. Peng,
 * Quesnelle and Kingma 2024, "DeMo: Decoupled Momentum Optimization", https://arxiv.org/abs/2411.19870, Algorithm 1.
 *
 *   chunks    `block` floats, the last may be shorter; in two dimensions squares of block · block, row by row
 *   a chunk   the indices of its k coefficients, as top-k writes them; then the coefficients, in fp32
 *             (a shorter chunk has fewer)
 *
 * The magnitudes of a chunk's coefficients add up to at most the largest fp32, so that nothing decoded is infinite.
 * This file is the definition: dct_top_k.c, dct_top_k_avx2.c, … write the same bytes.
 */
import type { Parameters } from "@terse/native-codecs";
import { codec } from "../../checked-codec.ts";
import type { Codec, Definition } from "../../codec.ts";
import { floats } from "../../shared/floats.ts";
import { indexBytes, largest, readChosen, writeChosen } from "../../shared/indices/indices.ts";
import { checkNames, checkWhole } from "../../shared/parameters.ts";
import { firstNotFinite } from "../../shared/reductions/reductions.ts";
import { largestFloat } from "../../shared/rounding.ts";
import { dct, inverseDct } from "./dct.ts";

export const definition: Definition = {
  name: "dct-top-k",
  implementation: "typescript",
  takes: {},
  gradients: {
    chosen: {
      block: { means: "the elements of a chunk", needed: true },
      k: { means: "the cosines of a chunk that are sent", needed: true },
    },
  },
  kept: chunksOf,
  blockLength: (parameters) => chunkLength(parameters),

  wireBytes(n, parameters) {
    const { block, dimensions, k } = parameters;
    if (dimensions === 2 && n % (block! * block!) !== 0) {
      throw new RangeError(
        `dct-top-k: ${n} floats are no whole number of squares of ${block} × ${block}; in two dimensions n must be a multiple of ${block! * block!}.`,
      );
    }
    // Without chunksOf, which allocates: a reader of frames calls this with any n that a frame contains.
    const length = chunkLength(parameters);
    const rest = n % length;
    return Math.floor(n / length) * chunkBytes(length, k!) + chunkBytes(rest, k!);
  },

  encode(wire, x, parameters) {
    const values = floats(x);
    const bad = firstNotFinite(values);
    if (bad < values.length) return bad;
    for (const chunk of chunksOf(values.length, parameters)) {
      const part = values.subarray(chunk.begin, chunk.begin + chunk.length);
      const coefficients = Float32Array.from(coefficientsOf(Float64Array.from(part), parameters));
      const chosen = largest(coefficients, chunk.k);
      if (!fits(chosen.map((i) => coefficients[i]!))) return chunk.begin + largest(part, 1)[0]!;
      writeChosen(wire.subarray(chunk.at, chunk.at + chunk.bytes), chosen, coefficients);
    }
    return values.length;
  },

  decodeAdd(sum, wire, parameters, { scale }) {
    const sums = floats(sum);
    const decoded = new Float32Array(sums.length);
    for (const { begin, length, k, at, bytes } of chunksOf(sums.length, parameters)) {
      const chosen = readChosen(wire.subarray(at, at + bytes), k, length);
      if (!chosen || !fits(chosen.map(([, value]) => value))) return false;
      const coefficients = new Float64Array(length);
      for (const [i, value] of chosen) coefficients[i] = value;
      decoded.set(floatsOf(coefficients, parameters), begin);
    }
    for (let i = 0; i < sums.length; i++) sums[i]! += Math.fround(Math.fround(scale) * decoded[i]!);
    return true;
  },
};

const fits = (values: readonly number[]): boolean =>
  values.reduce((sum, value) => sum + Math.abs(value), 0) <= largestFloat;

/**
 * Where each chunk's floats begin and how many they are; how many coefficients it keeps; where on the wire they lie.
 */
function chunksOf(n: number, parameters: Parameters) {
  const { k } = parameters;
  const whole = chunkLength(parameters);
  let at = 0;
  return Array.from({ length: Math.ceil(n / whole) }, (_, chunk) => {
    const begin = chunk * whole;
    const length = Math.min(whole, n - begin);
    const kept = Math.min(k!, length);
    const bytes = chunkBytes(length, kept);
    at += bytes;
    return { begin, length, k: kept, at: at - bytes, bytes };
  });
}

const chunkLength = ({ block, dimensions }: Parameters): number => (dimensions === 2 ? block! * block! : block!);

/** The bytes of a chunk that keeps k coefficients, or all if it is shorter. */
function chunkBytes(length: number, k: number): number {
  const kept = Math.min(k, length);
  return indexBytes(kept, length) + 4 * kept;
}

/** Rows first, then columns. */
function coefficientsOf(x: Float64Array, { block, dimensions }: Parameters): Float64Array {
  return dimensions === 2 ? ofColumns(ofRows(x, block!, dct), block!, dct) : dct(x);
}

/** Columns first, then rows. */
function floatsOf(X: Float64Array, { block, dimensions }: Parameters): Float64Array {
  return dimensions === 2 ? ofRows(ofColumns(X, block!, inverseDct), block!, inverseDct) : inverseDct(X);
}

type Transform = (line: Float64Array) => Float64Array;

function ofRows(square: Float64Array, side: number, transform: Transform): Float64Array {
  const result = new Float64Array(square.length);
  for (let at = 0; at < square.length; at += side) result.set(transform(square.slice(at, at + side)), at);
  return result;
}

const ofColumns = (square: Float64Array, side: number, transform: Transform): Float64Array =>
  transposed(ofRows(transposed(square, side), side, transform), side);

const transposed = (square: Float64Array, side: number): Float64Array =>
  square.map((_, i) => square[(i % side) * side + Math.floor(i / side)]!);

/** Longest side of a chunk, in one and in two dimensions. */
const LONGEST = [0, 4096, 128];

/**
 * Keeps the k coefficients of largest magnitude of each chunk's orthonormal DCT, with their places: DeMo's compression.
 *
 * block: the floats of a chunk, 1 … 4096; the last chunk may be shorter. With dimensions 2 its side, 1 … 128; whole
 * squares must be given, one after the other. k: from 1 to the coefficients of a chunk. Anything else is a RangeError.
 */
export function dctTopK(parameters: {
  readonly block: number;
  readonly k: number;
  readonly dimensions?: 1 | 2 | undefined;
}): Codec {
  checkNames("dct-top-k", parameters, ["block", "k", "dimensions"]);
  const { block, k, dimensions = 1 } = parameters;
  checkWhole("dct-top-k", "dimensions", dimensions, 1, 2);
  checkWhole("dct-top-k", "block", block, 1, LONGEST[dimensions]);
  checkWhole("dct-top-k", "k", k, 1, block ** dimensions);
  return codec(definition, parameters);
}
