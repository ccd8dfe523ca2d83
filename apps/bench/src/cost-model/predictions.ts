/** The picture of a run: measured over predicted times of exchanges, with a band of ± 15 %. */
import { dot, line } from "@observablehq/plot";
import { chart, powersOfTen } from "@terse/pictures/chart";
import { legend, svg } from "@terse/pictures/svg";
import type { Measurement } from "../measurement.ts";
import { rateText } from "../setting-text.ts";

const [width, height, left, right, top, bottom] = [660, 476, 64, 44, 80, 52];
const colours = ["#d1242f", "#0969da", "#1a7f37", "#9a6700", "#8250df", "#57606a"];
const band = 0.15;

export function predictions(measurements: readonly Measurement[]): string | undefined {
  const points = new Map<string, { predicted?: number; measured?: number }>();
  for (const { case: what, metric, value } of measurements)
    if (metric === "predicted" || metric === "measured") points.set(what, { ...points.get(what), [metric]: value });
  if (points.size === 0) return undefined;
  const linkOf = (what: string) => /\d+[kmg]?bit/.exec(what)?.[0] ?? "";
  const links = [...new Set([...points.keys()].map(linkOf))];
  const values = [...points.values()].flatMap(({ predicted, measured }) => [predicted!, measured!]);
  const [low, high] = [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
  const dots = [...points].map(([what, times]) => ({ what, ...times, link: linkOf(what) }));
  const ends = [10 ** low, 10 ** Math.max(high, low + 1)] as const;
  const diagonal = (factor: number, strokeDasharray = "") =>
    line(ends, { x: (time) => time, y: (time) => time * factor, stroke: "#57606a", strokeDasharray, clip: true });
  const axis = { type: "log", domain: ends, grid: true } as const;
  const ticks = { ticks: high - low, tickFormat: powersOfTen((time) => `${time} ms`) };
  const drawn = chart(0, top, {
    width,
    height: height - top,
    marginLeft: left,
    marginRight: right,
    marginBottom: bottom,
    x: { ...axis, ...ticks, label: "predicted" },
    y: { ...axis, ...ticks, label: "measured", labelOffset: 56 },
    color: { domain: links, range: colours },
    marks: [
      diagonal(1),
      diagonal(1 / (1 + band), "4 3"),
      diagonal(1 / (1 - band), "4 3"),
      dot(dots, { x: "predicted", y: "measured", fill: "link", fillOpacity: 0.75, r: 4, title: "what" }),
    ],
  });
  const swatches = links.map(
    (link, i) =>
      [
        rateText(link),
        `<circle fill-opacity=".75" cx="10" cy="-4" r="4" fill="${colours[i % colours.length]}"/>`,
      ] as const,
  );
  const title = "Measured over predicted times of exchanges: a correct prediction is on the diagonal";
  const bandLine = '<path stroke="#57606a" stroke-dasharray="4 3" d="M0 -4h18"/>';
  return svg({ width, height, title }, [legend([...swatches, ["± 15 %", bandLine]], 16, 48), drawn]);
}
