import { expect, it } from "vitest";
import { panels } from "./panels.ts";
import { rateText, settingText } from "./svg.ts";
import { barsIn } from "./testing/bars-in.ts";

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

it("draws a bar as long as its value, with the waiting time at its end and the range of values", () => {
  const svg = panels({
    title: "shorter is better",
    own: "ours",
    waiting: "waiting",
    peer: "peers",
    panels: [
      {
        title: "2 ranks",
        bars: [
          { label: "ours", value: 26, text: "26 ms", waiting: 13, range: [13, 52] },
          { label: "theirs", value: 52, text: "52 ms", peer: true },
        ],
      },
    ],
  })!;
  expect(barsIn(svg)).toEqual([
    ["own", 250, 130],
    ["own-waiting", 380, 130],
    ["peer", 250, 520],
  ]);
  const [, from, to] = /aria-label="rule">.*? x2="([\d.]+)" x1="([\d.]+)"/.exec(svg)!;
  expect([Number(from), Number(to)].sort((a, b) => a - b)).toEqual([380, 770]);
});
