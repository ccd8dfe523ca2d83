import { expect, it } from "vitest";
import { barsIn } from "../testing/bars-in.ts";
import { bars } from "./bars.ts";

it("draws a bar for each direction of a codec, as long as its share of the streaming speed", () => {
  const over = (measured: string, value: number) => ({ case: measured, metric: "over_stream", value, unit: "ratio" });
  const svg = bars([
    over("sign encode, avx2", 0.6),
    over("sign decode, avx2", 1.2),
    over("l1, 4 bits encode, avx512", 0.3),
    { case: "sign encode, avx2", metric: "gb_per_second", value: 7, unit: "GB/s" },
  ])!;
  expect(barsIn(svg)).toEqual([
    ["own", 250, 285],
    ["own", 250, 142.5],
    ["peer", 250, 570],
  ]);
  expect(svg).toContain("l1, 4 bits");
});
