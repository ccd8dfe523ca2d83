import { describe, expect, it } from "vitest";
import { collectives, type DType, reductions } from "./index.ts";

const order: DType[] = ["u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "bool"];

/** a ∘ b for every pair of equal positions, in 16-bit storage. */
function reduce16(op: keyof typeof reductions, dtype: DType, a: Uint16Array, b: Uint16Array): Uint16Array {
  const into = a.slice();
  collectives().reduce(
    reductions[op],
    order.indexOf(dtype),
    new Uint8Array(into.buffer),
    new Uint8Array(b.buffer, b.byteOffset, b.byteLength),
  );
  return into;
}

// The formats by their definition (IEEE 754-2019 §3.4), in exact double arithmetic. `encode` searches for the nearest
// representable number.
function decode(bits: number, exponentBits: number): number {
  const fractionBits = 15 - exponentBits;
  const sign = bits >> 15 ? -1 : 1;
  const exponent = (bits >> fractionBits) & ((1 << exponentBits) - 1);
  const fraction = bits & ((1 << fractionBits) - 1);
  const bias = (1 << (exponentBits - 1)) - 1;
  if (exponent === (1 << exponentBits) - 1) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias - fractionBits);
  return sign * (1 + fraction / (1 << fractionBits)) * 2 ** (exponent - bias);
}

function encode(x: number, exponentBits: number): number {
  const infinity = ((1 << exponentBits) - 1) << (15 - exponentBits);
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const size = Math.abs(x);
  let [low, high] = [0, infinity]; // bit patterns of positive numbers have the order of the numbers
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (decode(middle, exponentBits) <= size) low = middle;
    else high = middle;
  }
  const below = decode(low, exponentBits);
  // Above the largest number the next step would be as wide as the last one.
  const above = high === infinity ? below + (below - decode(low - 1, exponentBits)) : decode(high, exponentBits);
  const [down, up] = [size - below, above - size];
  return sign | (up < down || (up === down && low % 2 === 1) ? high : low);
}

describe.each([
  ["f16", 5],
  ["bf16", 8],
] as const)("adding in %s", (dtype, exponentBits) => {
  it("keeps every number when 0 is added, and rounds every sum to nearest even", () => {
    const all = Uint16Array.from({ length: 65536 }, (_, i) => i);
    for (const step of [0, 1, 0x3c01, 0x3f81, 0x7bff, 0x8001, 0xc123, 12_345]) {
      const other = Uint16Array.from(all, (_, i) => (step === 0 ? 0 : i * 40_503 + step));
      const got = reduce16("sum", dtype, all, other);
      let wrong = 0;
      for (let i = 0; i < 65536; i++) {
        // By definition this reduction rounds the sum to f32 first.
        const want = Math.fround(decode(i, exponentBits) + decode(other[i]!, exponentBits));
        const here = got[i]!;
        if (Number.isNaN(want)) wrong += Number.isNaN(decode(here, exponentBits)) ? 0 : 1;
        else if (Math.abs(want) === Number.POSITIVE_INFINITY) wrong += decode(here, exponentBits) === want ? 0 : 1;
        else wrong += here === encode(want, exponentBits) ? 0 : 1;
      }
      expect(wrong, `step ${step}`).toBe(0);
    }
  });
});

describe("integers", () => {
  it("wrap in sums and products", () => {
    const into = Uint8Array.of(200, 255, 16);
    collectives().reduce(reductions.sum, order.indexOf("u8"), into, Uint8Array.of(100, 1, 1));
    expect([...into]).toEqual([44, 0, 17]);
    const wide = Int16Array.of(300, -32768, 181);
    collectives().reduce(
      reductions.prod,
      order.indexOf("i16"),
      new Uint8Array(wide.buffer),
      new Uint8Array(Int16Array.of(300, -1, 182).buffer),
    );
    expect([...wide]).toEqual([...Int16Array.of(90_000, 32_768, 32_942)]);
  });
});
