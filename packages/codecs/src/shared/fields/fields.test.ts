import type { Parameters } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import { random } from "../../testing/inputs.ts";
import { checkedFields, field, fieldBytes, setField } from "./fields.ts";

describe("fields", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 16])("of %d bits lie one after the other, least significant bit first", (width) => {
    const next = random(width);
    const values = Array.from({ length: 77 }, () => Math.floor(next() * 2 ** width));
    const bytes = new Uint8Array(fieldBytes(77, width));
    for (const [i, value] of values.entries()) setField(bytes, i, width, value);
    // The whole as one number: Σ value · 2^(i width).
    const whole = values.reduce((sum, value, i) => sum + (BigInt(value) << BigInt(i * width)), 0n);
    expect(bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)).toBe(whole);
    expect(values.map((_, i) => field(bytes, i, width))).toEqual(values);
  });

  it("have room for the sum of all ranks, or are refused with what would have", () => {
    const widths = [2, 4, 8, 16];
    expect(checkedFields("count", { bits: 1, width: 4, ranks: 15 }, widths).width).toBe(4);
    expect(() => checkedFields("count", { bits: 1, width: 4, ranks: 16 }, widths)).toThrow(
      "count: 16 ranks of 1 bit sum up to 16, and a field of 4 bits holds 15: take a width of 8, or fewer bits.",
    );
    expect(() => checkedFields("count", { bits: 8, ranks: 258 }, widths)).toThrow(
      "count: 258 ranks of 8 bits sum up to 65790, and a field of 16 bits holds 65535: take fewer bits or fewer ranks.",
    );
    expect(() => checkedFields("count", { bits: 3, width: 5 }, widths)).toThrow(
      "count: width is 5, and fields of 3 bits per float are 2, 4, 8 or 16 bits wide.",
    );
    expect(() => checkedFields("count", { bits: 3, width: 2 }, widths)).toThrow("width is 2, narrower than the 3 bits");
    expect(() => checkedFields("count", { bits: 3, ranks: 0 }, widths)).toThrow("ranks is 0");
  });

  it.each([
    [1, 2],
    [3, 2],
    [4, 4],
    [15, 4],
    [16, 8],
    [255, 8],
    [256, 16],
    [65535, 16],
  ])("are as wide as %d ranks of one bit need: %d bits", (ranks, width) => {
    expect(checkedFields<Parameters>("count", { bits: 1, ranks }, [2, 4, 8, 16]).width).toBe(width);
  });
});
