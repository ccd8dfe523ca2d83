import { describe, expect, it } from "vitest";
import { splitText } from "./split-text.ts";

/** A text of numbered 4-byte words. */
function numbered(words: number): Uint8Array {
  return new Uint8Array(Uint32Array.from({ length: words }, (_, i) => i).buffer);
}
const wordsOf = (bytes: Uint8Array) => [...new Uint32Array(bytes.slice().buffer)];

describe("splitText", () => {
  it("holds out the end of a short text", () => {
    const { train, validation } = splitText(Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 0.3);
    expect([...train]).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect([...validation]).toEqual([7, 8, 9]);
  });

  it("holds out the end of each stretch of a long text, in order, and loses no word", () => {
    const words = 1 << 20; // 4 MiB; an eighth of it is 32 pieces of 16 KiB
    const { train, validation } = splitText(numbered(words), 1 / 8);
    const stretch = words / 32;
    const isHeld = (word: number) => word % stretch >= (stretch * 7) / 8;
    const all = Array.from({ length: words }, (_, i) => i);
    expect(wordsOf(validation)).toEqual(all.filter(isHeld));
    expect(wordsOf(train)).toEqual(all.filter((word) => !isHeld(word)));
  });

  it.each([0, 1, 2, 100, 65_537, 1_000_003, 3_000_000])(
    "cuts %i bytes into two parts with all of its bytes",
    (length) => {
      for (const fraction of [0, 0.013, 0.1, 0.5, 0.99]) {
        const bytes = Uint8Array.from({ length }, (_, i) => (i * 2_654_435_761) >>> 24);
        const histogram = (part: Uint8Array, counts = new Uint32Array(256)) => {
          for (const byte of part) counts[byte]!++;
          return counts;
        };
        const before = histogram(bytes);
        const { train, validation } = splitText(bytes, fraction);
        expect(validation.length).toBe(Math.floor(length * fraction));
        expect(train.length + validation.length).toBe(length);
        expect(histogram(validation, histogram(train))).toEqual(before);
      }
    },
  );

  it("returns views of the given array, so that memory holds the text once", () => {
    const bytes = new Uint8Array(1000);
    const { train, validation } = splitText(bytes, 0.1);
    expect(train.buffer).toBe(bytes.buffer);
    expect(validation.buffer).toBe(bytes.buffer);
  });
});
