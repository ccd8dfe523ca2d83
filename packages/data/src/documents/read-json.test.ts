import { expect, it } from "vitest";
import { exactJson, plainJson } from "./read-json.ts";

it("reads NaN and Infinity, as Python's json does, but in no string", () => {
  const json = '{"NaN": NaN, "a": [Infinity, -Infinity, 0, 1.5], "b": "NaN \\\\\\" -Infinity", "c": {"7": NaN}}';
  const all = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const b = 'NaN \\" -Infinity';
  expect(exactJson(json)).toEqual({ NaN: Number.NaN, a: [...all, 0n, 1.5], b, c: new Map([["7", Number.NaN]]) });
  expect(plainJson(json)).toEqual({ NaN: null, a: [...all, 0, 1.5], b, c: { 7: null } });
  for (const wrong of ["-NaN", "NaN1", "[Infinity Infinity]", '{"a": NaN', "nan"])
    for (const read of [exactJson, plainJson]) expect(() => read(wrong), wrong).toThrow(SyntaxError);
});

it("reads a string of any length beside a key of digits", () => {
  for (const part of ["x", "\\n", '\\"']) {
    const row = exactJson(`{"text": "${part.repeat(20_000_000)}", "meta": {"10": 1}}`) as { text: string };
    expect(row.text).toHaveLength(20_000_000);
    expect(row).toHaveProperty("meta", new Map([["10", 1n]]));
  }
});
