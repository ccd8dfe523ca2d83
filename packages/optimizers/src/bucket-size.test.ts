import { loopback } from "@terse/collectives";
import type { Measured } from "@terse/exchange";
import { expect, it } from "vitest";
import { BucketSize } from "./bucket-size.ts";

/** α 1 ms, 1 µs a byte. */
const measured = { link: { alpha: 1e-3, alphaLong: 1e-3, perMessage: 0, beta: 1e-6 } } as Measured;

it("chooses by the slowest rank's median backward, the same on all ranks", async () => {
  const groups = loopback(3);
  const chosen = await Promise.all(
    groups.map(async (group) => {
      const size = new BucketSize(group, 64_000, (n) => n / 8, measured); // 8000 bytes, 8 ms
      const backward = [9, 0.016, 0.016, 0.004].map((seconds) => seconds / (1 + group.rank)); // the first step is slow
      const enough = backward.map((seconds) => size.saw(seconds));
      expect(enough).toEqual([false, false, false, true]);
      return size.choose();
    }),
  );
  for (const each of chosen) expect(each).toEqual(chosen[0]);
  // B buckets take 2 + 8 / B ms each and are ready every 16 / B ms: 2 leave 6 ms to wait for, 3 leave 4.67, 4 leave 4;
  // with 5 the wire is the slower one, and 16 / 5 + 5 · 3.6 − 16 = 5.2 ms are left.
  expect(chosen[0]!.elements).toBe(16_000);
  expect(chosen[0]!.why).toBe(
    "4 buckets of 16000 parameters: backward takes 16 ms, a message 1 ms and 8 Mbit/s, so 4 ms should be left to wait for",
  );
  await Promise.all(groups.map((group) => group.close()));
});

it("measures the network where no measurement is given", async () => {
  const groups = loopback(2);
  const chosen = await Promise.all(
    groups.map((group) => {
      const size = new BucketSize(group, 1000, (n) => n / 8);
      for (let k = 0; k < 4; k++) size.saw(0.01);
      return size.choose();
    }),
  );
  expect(chosen[0]).toEqual(chosen[1]);
  expect(chosen[0]!.elements).toBeGreaterThan(0);
  await Promise.all(groups.map((group) => group.close()));
});
