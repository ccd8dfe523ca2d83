import { expect, it } from "vitest";
import { panels } from "./panels.ts";
import { barsIn } from "./testing/bars-in.ts";

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
