import { expect, it } from "vitest";
import { amountText, bytesText, durationText } from "./format.ts";

it("writes bytes in powers of a thousand", () => {
  expect([0, 999, 1000, 522_592, 16_722_944, 2e12].map(bytesText)).toEqual([
    "0 B",
    "999 B",
    "1.00 kB",
    "522.6 kB",
    "16.7 MB",
    "2.00 TB",
  ]);
});

it("writes amounts with their unit", () => {
  expect([
    amountText(522_592, "byte"),
    amountText(60_000, "image"),
    amountText(1, "image"),
    amountText(2, "batch"),
  ]).toEqual(["522.6 kB", "60,000 images", "1 image", "2 batches"]);
});

it("writes durations as a clock shows them", () => {
  expect([0, 9, 95, 4000].map(durationText)).toEqual(["0:00", "0:09", "1:35", "1:06:40"]);
});
