/**
 * The values c[0] … c[k−1] of the kept elements, in the order of their indices.
 *
 *   f32     k fp32
 *   f16     k IEEE halves, rounded to nearest even
 *   2bit    the bin q of each value, 2 bits, and a table of four fp32 that says what a bin means
 *           q = 0 below μ − 1.5 σ,  1 below μ,  2 below μ + 1.5 σ,  3 from there on: four equal bins over μ ± 3 σ
 *           table[q] = fp32(the mean of the values in bin q), 0 if there are none
 *   sign    1 bit, 1 where c ≥ 0, and a table of one fp32: the mean |c|. Decoded: plus or minus that
 *
 * μ is the mean of all kept values, σ = √(mean (c − μ)²). Sums are in fp64, in the order of shared/reductions, and the
 * borders of the bins are in fp64 too. The bins and their means are those of SparseLoCo, Sarfi et al. 2025,
 * https://arxiv.org/abs/2508.15706. Its published code rounds (c − μ) / 1.5 σ to the nearest whole number, so that one
 * of its bins lies around μ, where no kept value is, and the bins differ on both sides of μ; here they do not.
 */
import { field, fieldBytes, setField } from "../../shared/fields/fields.ts";
import { meansOfBins } from "../../shared/means-of-bins/means-of-bins.ts";
import { deviation, sumOfMagnitudes, sumOfValues } from "../../shared/reductions/reductions.ts";
import { definition as f16 } from "../f16/f16.ts";

interface Form {
  /** Bits of a value. */
  readonly bits: number;
  /** The number of fp32 in the table. */
  readonly table: number;
  /** `values` are zeros. Returns the number of kept values, or the first of them that cannot be written. */
  write(values: Uint8Array, table: DataView, kept: Float32Array): number;
  /** undefined if no encoder writes them. `table` is finite. */
  read(values: Uint8Array, table: readonly number[], k: number): Float32Array | undefined;
}

const forms: Readonly<Record<"f32" | "f16" | "2bit" | "sign", Form>> = {
  f32: {
    bits: 32,
    table: 0,
    write(values, _, kept) {
      values.set(new Uint8Array(kept.buffer));
      return kept.length;
    },
    read(values) {
      const read = new Float32Array(values.slice().buffer);
      return read.every((c) => Number.isFinite(c)) ? read : undefined;
    },
  },
  f16: {
    bits: 16,
    table: 0,
    write: (values, _, kept) => f16.encode(values, kept, {}, {}),
    read(values, _, k) {
      const read = new Float32Array(k).fill(-0); // −0 + c = c, for both zeros too
      return f16.decodeAdd(read, values, {}, { scale: 1 }) ? read : undefined;
    },
  },
  "2bit": {
    bits: 2,
    table: 4,
    write(values, table, kept) {
      const μ = sumOfValues(kept) / kept.length;
      const σ = deviation(kept);
      const borders = [μ - 1.5 * σ, μ, μ + 1.5 * σ];
      const bins = Array.from(kept, (c) => borders.filter((border) => c >= border).length);
      for (const [j, q] of bins.entries()) setField(values, j, 2, q);
      const means = meansOfBins(kept, bins, 4, () => 0);
      for (const [q, mean] of means.entries()) table.setFloat32(4 * q, mean, true);
      return kept.length;
    },
    read: (values, table, k) => Float32Array.from({ length: k }, (_, j) => table[field(values, j, 2)]!),
  },
  sign: {
    bits: 1,
    table: 1,
    write(values, table, kept) {
      table.setFloat32(0, sumOfMagnitudes(kept) / kept.length, true);
      for (const [j, c] of kept.entries()) setField(values, j, 1, c >= 0 ? 1 : 0);
      return kept.length;
    },
    read: (values, [mean], k) =>
      mean! < 0 || Object.is(mean, -0)
        ? undefined
        : Float32Array.from({ length: k }, (_, j) => (field(values, j, 1) === 1 ? mean! : -mean!)),
  },
};

/** How values are written. */
export type Values = keyof typeof forms;
/** In the order of their numbers in a frame. */
export const valueCodings = ["f32", "f16", "2bit", "sign"] as const satisfies readonly Values[];

/** Bytes of the table, at the beginning of the wire. */
export const tableBytes = (values: Values = "f32"): number => 4 * forms[values].table;

/** Bytes of k values, after the indices. */
export const valueBytes = (k: number, values: Values = "f32"): number => fieldBytes(k, forms[values].bits);

/** Returns the number of kept values, or the first of them that cannot be written. */
export function writeValues(wire: Uint8Array, kept: Float32Array, values: Values = "f32"): number {
  const bytes = wire.subarray(wire.length - valueBytes(kept.length, values)).fill(0);
  return forms[values].write(bytes, new DataView(wire.buffer, wire.byteOffset, tableBytes(values)), kept);
}

/**
 * undefined if no encoder writes them: a float is not finite, a magnitude is negative, or bits behind them are not 0.
 */
export function readValues(wire: Uint8Array, k: number, values: Values = "f32"): Float32Array | undefined {
  const { bits, table, read } = forms[values];
  const view = new DataView(wire.buffer, wire.byteOffset, 4 * table);
  const numbers = Array.from({ length: table }, (_, q) => view.getFloat32(4 * q, true));
  const bytes = wire.subarray(wire.length - valueBytes(k, values));
  const used = (k * bits) % 8;
  if (!numbers.every(Number.isFinite) || (used > 0 && bytes.at(-1)! >> used !== 0)) return undefined;
  return read(bytes, numbers, k);
}
