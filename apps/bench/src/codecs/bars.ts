/** The picture of a run: how much of the memory's speed each codec reaches when it encodes and decodes. */
import { barX, text } from "@observablehq/plot";
import { chart } from "@terse/pictures/chart";
import { legend, svg, swatch } from "@terse/pictures/svg";
import type { Measurement } from "../measurement.ts";

const [width, left, right, top, row] = [860, 250, 40, 72, 30];
const full = 1.2; // the end of the scale

export function bars(measurements: readonly Measurement[]): string | undefined {
  const rows = new Map<string, { encode?: number; decode?: number; by: string }>();
  for (const { case: measured, metric, value } of measurements) {
    const [, label, what, by] = measured.match(/^(.*) (encode|decode), (\w+)$/) ?? [];
    if (metric !== "over_stream" || label === undefined) continue;
    rows.set(label, { ...rows.get(label), by: by!, [what!]: value });
  }
  if (rows.size === 0) return undefined;
  const shares = [...rows].flatMap(([label, { by, ...shares }]) =>
    (["encode", "decode"] as const).flatMap((what) => {
      const value = shares[what];
      return value === undefined ? [] : [{ codec: `${label} ${by}`, what, value }];
    }),
  );
  const of = (what: string) => shares.filter((share) => share.what === what);
  const place = { y: "what", fy: "codec" };
  const drawn = chart(0, top - 16, {
    width,
    height: rows.size * row + 70,
    marginLeft: left,
    marginRight: right,
    marginBottom: 44,
    x: {
      domain: [0, full],
      clamp: true,
      ticks: [0, 0.25, 0.5, 0.75, 1],
      tickFormat: String,
      grid: true,
      label: "bytes of floats and wire a second ÷ bytes that streaming moves in the same run",
    },
    y: { axis: null, domain: ["encode", "decode"], padding: 0.1 },
    fy: { axis: "left", label: null, domain: [...rows].map(([label, { by }]) => `${label} ${by}`) },
    marks: [
      barX(of("encode"), { ...place, x: "value", className: "own" }),
      barX(of("decode"), { ...place, x: "value", className: "peer" }),
      text(shares, {
        ...place,
        x: "value",
        text: ({ value }) => value.toFixed(2),
        dx: 5,
        fontSize: 10,
        textAnchor: "start",
        className: "axis",
      }),
    ],
  });
  const swatches = [
    ["encode", swatch("own")],
    ["decode and add", swatch("peer")],
  ] as const;
  const title =
    "Codecs beside plain streaming through memory, one thread, 64 Mi floats: longer is better, 1 is memory speed";
  return svg({ width, height: top + rows.size * row + 58, title }, [legend(swatches, 16, 46), drawn]);
}
