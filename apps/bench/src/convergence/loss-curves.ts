/**
 * Pictures of recorded runs: the validation loss of each method by steps, by bytes and by seconds, means over the seeds
 * in bands.
 */
import { areaY, lineY } from "@observablehq/plot";
import { bytesText } from "@terse/train/format";
import { chart, powersOfTen } from "../chart.ts";
import { svg } from "../svg.ts";
import { type Curve, spreadText } from "./curves.ts";

/** One plot, and what its horizontal axis shows. */
export interface Axis {
  readonly label: string;
  readonly logarithmic: boolean;
  /** Undefined where the curve is not drawn. */
  at(curve: Curve, step: number): number | undefined;
  text(value: number): string;
}

export const bySteps: Axis = { label: "steps", logarithmic: false, at: (_, step) => step, text: String };

export const byBytes: Axis = {
  label: "bytes that one worker has sent, logarithmic",
  logarithmic: true,
  at: (curve, step) => (step > 0 ? curve.bytesAfter(step) : undefined),
  text: (bytes) => bytesText(bytes).replace(/\.0+ /, " "),
};

export const bySeconds = (rate: string, text: string): Axis => ({
  label: `seconds on links of ${text}, logarithmic`,
  logarithmic: true,
  at: (curve, step) => (step > 0 ? curve.secondsAfter(rate, step) : undefined),
  text: (seconds) => `${seconds} s`,
});

/** Told apart by colour, and by dashes where there are more of them. */
const colours = ["#0969da", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#57606a", "#0a7ea4"];
const dashes = ["", "7 3", "2 3", "9 3 2 3"];

const [plotWidth, plotHeight, gap, top] = [400, 310, 16, 48];

export interface Heading {
  readonly title: string;
  readonly subtitle?: string;
}

/** Undefined where there is no curve. */
export function lossCurves(curves: readonly Curve[], axes: readonly Axis[], heading: Heading): string | undefined {
  if (curves.length === 0) return undefined;
  const columns = Math.min(2, axes.length);
  const place = (i: number) => [(i % columns) * (plotWidth + gap), top + Math.floor(i / columns) * plotHeight] as const;
  const sorted = curves
    .toSorted((a, b) => a.last.mean - b.last.mean)
    .map((curve, i) => ({ ...curve, stroke: colours[i % colours.length]!, strokeDasharray: dashOf(i) }));
  const legendTop = top + Math.ceil(axes.length / columns) * plotHeight + 20;
  const legend = sorted.map(({ method, last, seeds, stroke, strokeDasharray }, i) => {
    const [x, y] = [44 + (i % 2) * (plotWidth + gap), legendTop + 18 * Math.floor(i / 2)];
    const line = `<path d="M0 -4h26" stroke="${stroke}" stroke-width="1.8" stroke-dasharray="${strokeDasharray}"/>`;
    return `<g transform="translate(${x} ${y})">${line}<text x="34">${method}: ${spreadText(last, seeds)}</text></g>`;
  });
  const plots = axes.map((axis, i) => plot(sorted, axis, ...place(i)));
  const [width, height] = [columns * (plotWidth + gap), legendTop + 18 * Math.ceil(sorted.length / 2) + 4];
  return svg({ width, height, ...heading }, [...plots, ...legend]);
}

const dashOf = (i: number) => dashes[Math.floor(i / colours.length) % dashes.length]!;

interface Pen {
  readonly stroke: string;
  readonly strokeDasharray: string;
}

function plot(curves: readonly (Curve & Pen)[], axis: Axis, x: number, y: number): string {
  const drawable = (value: number | undefined) => Number.isFinite(value) && (value! > 0 || !axis.logarithmic);
  const marks = curves.flatMap(({ stroke, strokeDasharray, ...curve }) => {
    const points = curve.points
      .map((point) => ({ ...point, at: axis.at(curve, point.step) }))
      .filter(({ at, mean }) => drawable(at) && Number.isFinite(mean));
    return [
      areaY(points, { x: "at", y1: "least", y2: "most", fill: stroke, fillOpacity: 0.14 }),
      lineY(points, { x: "at", y: "mean", stroke, strokeDasharray, strokeWidth: 1.8 }),
    ];
  });
  const along = axis.logarithmic
    ? { type: "log" as const, tickFormat: powersOfTen(axis.text) }
    : { tickFormat: axis.text, ticks: 5 };
  return chart(x, y, {
    width: plotWidth,
    height: plotHeight,
    marginLeft: 48,
    marginBottom: 40,
    x: { ...along, label: axis.label },
    y: { label: "validation loss, nats per byte", grid: true, ticks: 5, labelOffset: 40 },
    marks,
  });
}
