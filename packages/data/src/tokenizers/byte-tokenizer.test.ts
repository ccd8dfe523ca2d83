import { describe, expect, it } from "vitest";
import { byteTokenizer } from "./byte-tokenizer.ts";

describe("byteTokenizer", () => {
  it.each(["", "a", "naïve", "日本語", "🦁 cub", "\u0000\n\t", "\ufeffwith a mark"])(
    "decodes what it encoded: %j",
    (text) => {
      expect(byteTokenizer.decode(byteTokenizer.encode(text))).toBe(text);
      expect(byteTokenizer.decode([...byteTokenizer.encode(text)])).toBe(text);
      expect(byteTokenizer.decode(BigInt64Array.from(byteTokenizer.encode(text), BigInt))).toBe(text);
    },
  );

  it("encodes as UTF-8", () => expect([...byteTokenizer.encode("é€")]).toEqual([0xc3, 0xa9, 0xe2, 0x82, 0xac]));

  it("decodes bytes that are not UTF-8 to replacement characters", () => {
    expect(byteTokenizer.decode([97, 0xff, 98, 0xc3])).toBe("a\ufffdb\ufffd");
  });

  it.each([
    [[97, 256], "Token 256 at position 1 is not a byte; give integers from 0 to 255."],
    [[-1], "Token -1 at position 0 is not a byte; give integers from 0 to 255."],
    [[1.5], "Token 1.5 at position 0 is not a byte; give integers from 0 to 255."],
    [[Number.NaN], "Token NaN at position 0 is not a byte; give integers from 0 to 255."],
  ])("refuses %j", (ids, message) => expect(() => byteTokenizer.decode(ids)).toThrow(message));
});
