import { expect, it } from "vitest";
import { rateText, settingText } from "./setting-text.ts";

it("writes settings and links in words", () => {
  expect(["×2 100mbit", "16 Mi ×4 1gbit emulated", "16 Mi ×2 loopback TCP"].map(settingText)).toEqual([
    "2 ranks, 100 Mbit/s",
    "4 ranks, 1 Gbit/s, emulated",
    "2 ranks, TCP on one machine",
  ]);
  expect(["20mbit,1ms", "1gbit,100us", "64kbit"].map(rateText)).toEqual([
    "20 Mbit/s, 1 ms",
    "1 Gbit/s, 100 µs",
    "64 kbit/s",
  ]);
});
