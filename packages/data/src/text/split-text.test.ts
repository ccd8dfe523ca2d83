import { describe, expect, it } from "vitest";
import { splitText } from "./split-text.ts";

describe("splitText", () => {
  it("holds out the end of a short text", () => {
    expect(splitText(10, 0.3)).toEqual({ training: [[0, 7]], validation: [[7, 10]] });
  });

  it("holds out the end of each stretch of a long text", () => {
    const { training, validation } = splitText(4 << 20, 1 / 8); // an eighth of 4 MiB is 32 pieces of 16 KiB
    const stretch = (4 << 20) / 32;
    expect(training).toEqual(Array.from({ length: 32 }, (_, i) => [i * stretch, (i + 7 / 8) * stretch]));
    expect(validation).toEqual(Array.from({ length: 32 }, (_, i) => [(i + 7 / 8) * stretch, (i + 1) * stretch]));
  });

  it.each([0, 1, 2, 100, 65_537, 1_000_003, 3_000_000])("gives each of %i bytes to one part", (length) => {
    for (const fraction of [0, 0.013, 0.1, 0.5, 0.99]) {
      const { training, validation } = splitText(length, fraction);
      const inOrder = training.flatMap((stretch, i) => [stretch, validation[i]!]);
      expect(inOrder[0]![0]).toBe(0);
      for (const [i, [begin]] of inOrder.entries()) if (i > 0) expect(begin).toBe(inOrder[i - 1]![1]);
      expect(inOrder.at(-1)![1]).toBe(length);
      expect(validation.reduce((sum, [begin, end]) => sum + end - begin, 0)).toBe(Math.floor(length * fraction));
    }
  });
});
