import { expect, it } from "vitest";
import { timeLeft } from "./time-left.ts";

const at = (seconds: number, first: number, done: number, of: number) => ({ seconds, steps: { first, done, of } });

it("is not known before the first step", () => {
  expect(timeLeft({ ended: [], running: [{ seconds: 9, steps: undefined }], waiting: 3 }, 1)).toBeUndefined();
});

it("goes by the runs that have ended, and the steps of those under way", () => {
  expect(timeLeft({ ended: [10, 20], running: [], waiting: 4 }, 2)).toBe(30);
  expect(timeLeft({ ended: [], running: [at(10, 0, 50, 100)], waiting: 2 }, 1)).toBe(10 + 2 * 20);
  // A resumed run has taken 50 steps here, of which each took 0.2 s.
  expect(timeLeft({ ended: [], running: [at(10, 400, 450, 500)], waiting: 0 }, 4)).toBe(10);
});

it("is at least what the slowest run needs", () => {
  expect(timeLeft({ ended: [], running: [at(10, 0, 10, 100), at(10, 0, 90, 100)], waiting: 0 }, 2)).toBe(90);
});
