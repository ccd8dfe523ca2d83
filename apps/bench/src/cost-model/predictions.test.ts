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
  const dots = [...svg.matchAll(/cx="([\d.]+)" cy="([\d.]+)" r="4" fill="(#\w+)"/g)].map(([, x, y, fill]) => [
    Number(x),
    Number(y),
    fill,
  ]);
  // From 1 to 100 ms: 64 to 616 to the right, 424 up to 80.
  expect(dots).toEqual([
    [616, 80, "#d1242f"],
    [64, 252, "#d1242f"],
    [340, 252, "#0969da"],
  ]);
});
