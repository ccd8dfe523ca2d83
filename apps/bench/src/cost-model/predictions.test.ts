import { expect, it } from "vitest";
import { predictions } from "./predictions.ts";

it("draws a dot for each exchange: its predicted time to the right, its measured time upwards", () => {
  const both = (what: string, predicted: number, measured: number) => [
    { case: what, metric: "predicted", value: predicted, unit: "ms" },
    { case: what, metric: "measured", value: measured, unit: "ms" },
    { case: what, metric: "error", value: predicted / measured - 1, unit: "ratio" },
  ];
  const svg = predictions([
    ...both("mean f32 loopback 20mbit,1ms ×2", 100, 100),
    ...both("vote all-to-all loopback 20mbit,1ms ×2", 1, 10),
    ...both("mean f32 loopback 1gbit,100us ×2", 10, 10),
  ])!;
  const [, circles] = /aria-label="dot">(.*?)<\/g>/.exec(svg)!;
  const dots = [...circles!.matchAll(/<circle ([^>]*)>/g)].map(([, words]) => {
    const of = (name: string) => new RegExp(`${name}="([^"]+)"`).exec(words!)![1]!;
    return [Number(of("cx")), Number(of("cy")), of("fill")] as const;
  });
  // From 1 to 100 ms, in the order of their sizes or of the lines.
  const [slow, late, fast] = dots.toSorted(([, , a], [, , b]) => b.localeCompare(a));
  expect([slow![2], late![2], fast![2]]).toEqual(["#d1242f", "#d1242f", "#0969da"]);
  expect(fast![0]).toBe((slow![0] + late![0]) / 2);
  expect(Math.abs(slow![0] - late![0])).toBe(552);
  expect(fast![1]).toBe(Math.max(slow![1], late![1]));
});
