import { expect, it } from "vitest";
import { report } from "./report.ts";

it("has a row for each exchange and each link, the worst prediction of each link, and says which predictions miss", () => {
  const where = "loopback 20mbit,1ms ×2";
  const vote = `vote all-to-all 524288 ${where}`;
  const smaller = `vote count 16384 ${where}`;
  const text = report(
    [
      { case: where, metric: "measuring", value: 0.4567, unit: "s" },
      { case: where, metric: "alpha", value: 1211.4, unit: "µs" },
      { case: where, metric: "alpha_long", value: 1300, unit: "µs" },
      { case: where, metric: "per_message", value: 0, unit: "µs" },
      { case: where, metric: "per_exchange", value: 31.4, unit: "µs" },
      { case: where, metric: "burst", value: 16_384, unit: "B" },
      { case: where, metric: "rate", value: 19.98, unit: "Mbit/s" },
      { case: vote, metric: "predicted", value: 28.78, unit: "ms" },
      { case: vote, metric: "measured", value: 29.123, unit: "ms" },
      { case: vote, metric: "error", value: -0.0118, unit: "ratio" },
      { case: smaller, metric: "predicted", value: 6, unit: "ms" },
      { case: smaller, metric: "measured", value: 8, unit: "ms" },
      { case: smaller, metric: "error", value: -0.25, unit: "ratio" },
      { case: "loopback 20mbit,1ms", metric: "worst_error", value: 0.0118, unit: "ratio" },
      { case: "loopback 20mbit,1ms", metric: "worst_error_small", value: 0.25, unit: "ratio" },
    ],
    { machine: "2 cores", when: "loopback-20mbit: 2026-11-21 22:00 UTC" },
  );
  expect(text).toContain(`| ${where} | 1210 | 1300 | 0 | 31.4 | 20 | 16 | 0.457 |\n`);
  expect(text).toContain(`| ${vote} | 28.8 | 29.1 | -1.2 % |\n`);
  expect(text).toContain("| loopback 20mbit,1ms | 1.2 % | 25.0 % |\n");
  expect(text).toContain(
    "1 of 2 predictions are off by more than 15 %, all of them of 16 Ki elements: by up to 25 %, or 2.0 ms, of exchanges that take up to 8.0 ms.",
  );
  expect(text).toContain("A vote of 16 Ki elements is latency alone");
  expect(text).toContain("2 cores.");
  expect(text).toContain("Recorded: loopback-20mbit: 2026-11-21 22:00 UTC.");
});
