/**
 * Figure 4 of Lion Cub: how the update before its sign is distributed, beside Laplace's and the normal distribution;
 * and by how much the largest value of a layer is above its mean.
 */
import { areaY, barX, lineY } from "@observablehq/plot";
import { chart } from "@terse/pictures/chart";
import { spreadOf } from "@terse/pictures/spread";
import { escaped, legend, svg } from "@terse/pictures/svg";
import type { Readings } from "./item.ts";
import { laplace, normal, shares } from "./lion-cub-quantiles.ts";

const [width, height, top, layers] = [860, 330, 60, 12];
const lines = { layers: "#0969da", laplace: "#d1242f", normal: "#57606a" };

/** Undefined where the quantiles were not recorded. */
export function distributionPicture(readings: Readings): string | undefined {
  const ofLayers = Object.keys(shares).map((name) =>
    readings.all(`${name} ÷ mean of `).flatMap(([, value]) => (Number.isFinite(value) ? [value] : [])),
  );
  if (ofLayers.some((values) => values.length === 0)) return undefined;
  const at = Object.values(shares).map((share) => -Math.log10(1 - share));
  const points = ofLayers.map((values, i) => ({ at: at[i]!, ...spreadOf(values) }));
  const curve = (values: readonly number[], stroke: string) =>
    lineY(
      values.map((value, i) => ({ at: at[i]!, value })),
      { x: "at", y: "value", stroke, strokeWidth: 1.8 },
    );
  const distribution = chart(0, top, {
    width: 470,
    height,
    marginLeft: 48,
    marginBottom: 40,
    x: {
      label: "share of the elements below it",
      ticks: at,
      tickFormat: (value: number) => `${Number((100 * (1 - 10 ** -value)).toFixed(1))} %`,
    },
    y: { label: "|c| ÷ its mean in the layer", grid: true, ticks: 5, labelOffset: 40 },
    marks: [
      areaY(points, { x: "at", y1: "least", y2: "most", fill: lines.layers, fillOpacity: 0.14 }),
      curve(
        points.map(({ mean }) => mean),
        lines.layers,
      ),
      curve(laplace, lines.laplace),
      curve(normal, lines.normal),
    ],
  });
  const largest = readings
    .all("largest ÷ mean of ")
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, layers);
  const bars = chart(470, top, {
    width: width - 470,
    height,
    marginLeft: 200,
    marginRight: 16,
    marginBottom: 40,
    x: { label: "largest |c| ÷ its mean", grid: true, ticks: 5 },
    y: { label: null, domain: largest.map(([name]) => escaped(name)), tickSize: 0 },
    marks: [
      barX(
        largest.map(([name, value]) => ({ name: escaped(name), value })),
        { x: "value", y: "name", className: "own", insetTop: 3, insetBottom: 3 },
      ),
    ],
  });
  const line = (stroke: string) => `<path d="M0 -4h16" stroke="${stroke}" stroke-width="1.8"/>`;
  const entries = [
    ["layers: the mean, in a band from the least to the most", line(lines.layers)],
    ["Laplace", line(lines.laplace)],
    ["normal", line(lines.normal)],
  ] as const;
  const title = "The update before its sign, after 400 steps of a small GPT";
  return svg({ width, height: top + height + 6, title }, [legend(entries, 16, 46), distribution, bars]);
}
