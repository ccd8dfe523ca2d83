import { expect, it } from "vitest";
import { defaultJobs, threadsOf } from "./jobs.ts";

const asked = { ranks: 2, bytesPerRank: 600e6, hasGpu: false };

it("takes a core for each rank, and half of the free memory", () => {
  expect(defaultJobs(asked, { cores: 16, freeBytes: 1e12 })).toBe(8);
  expect(defaultJobs(asked, { cores: 16, freeBytes: 12e9 })).toBe(3);
  expect(defaultJobs(asked, { cores: 1, freeBytes: 1e6 })).toBe(1);
  expect(defaultJobs({ ...asked, hasGpu: true }, { cores: 16, freeBytes: 1e12 })).toBe(1);
});

it("gives the ranks of runs side by side their share of the cores", () => {
  const machine = { cores: 16, freeBytes: 1e12 };
  expect([threadsOf(1, 2, machine), threadsOf(2, 2, machine), threadsOf(16, 2, machine)]).toEqual([undefined, 4, 1]);
});
