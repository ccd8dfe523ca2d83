import { afterEach, expect, it, vi } from "vitest";
import { columnsOf, fitted, hasStyles, isTerminal } from "./terminal-line.ts";

afterEach(() => vi.unstubAllEnvs());

it("cuts a line to the columns that it takes", () => {
  expect(fitted("amber", 5)).toBe("amber");
  expect(fitted("amber", 4)).toBe("amb…");
  expect(["amber", "数据"].map((text) => fitted(text, 1))).toEqual(["…", "…"]);
  expect([0, -3].map((columns) => fitted("amber", columns))).toEqual(["", ""]);
  expect([4, 3, 2].map((columns) => fitted("数据", columns))).toEqual(["数据", "数…", "…"]);
  expect(fitted("e\u0301e\u0301", 2)).toBe("e\u0301e\u0301");
});

it("takes a dumb terminal for none, and one without a size for 80 columns", () => {
  expect([{ isTTY: true }, { isTTY: false }, {}].map(isTerminal)).toEqual([true, false, false]);
  expect([{ columns: 0 }, {}, { columns: 20 }].map(columnsOf)).toEqual([80, 80, 20]);
  vi.stubEnv("TERM", "dumb");
  expect(isTerminal({ isTTY: true })).toBe(false);
});

it("has no styles where NO_COLOR says so", () => {
  expect(hasStyles()).toBe(true);
  vi.stubEnv("NO_COLOR", "1");
  expect(hasStyles()).toBe(false);
});
