import { collectives } from "@terse/native-collectives";
import { describe, expect, it } from "vitest";
import { copy } from "./index.ts";

describe("a copy", () => {
  it("writes to and reads from a pointer, and touches nothing beside it", () => {
    const array = new Float32Array(5).fill(7);
    const inner = { pointer: collectives().addressOf(array) + 4n, length: 3, dtype: "f32" as const, device: "cpu" };
    copy(inner, Float32Array.of(1, 2, 3));
    expect([...array]).toEqual([7, 1, 2, 3, 7]);
    const back = new Float32Array(3);
    copy(back, inner);
    expect([...back]).toEqual([1, 2, 3]);
  });

  it("takes memory that overlaps, and empty memory", () => {
    const x = Float32Array.of(1, 2, 3, 4);
    copy(x.subarray(1), x.subarray(0, 3));
    expect([...x]).toEqual([1, 1, 2, 3]);
    copy(x.subarray(0, 0), x.subarray(4));
  });

  it("refuses another length or type", () => {
    expect(() => copy(new Float32Array(2), new Float32Array(3))).toThrow("into has 2 elements, and from has 3");
    expect(() => copy(new Float32Array(2), new Int32Array(2) as never)).toThrow("f32");
  });
});
