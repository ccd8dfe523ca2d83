/**
 * Curves by one or several horizontal axes, each curve in a band from the least to the most of its repetitions, with a
 * legend below them.
 */
import { areaY, lineY } from "@observablehq/plot";
import { chart, powersOfTen } from "./chart.ts";
import type { Spread } from "./spread.ts";
import { escaped, svg } from "./svg.ts";

/** A curve over steps, and how the legend names it. */
export interface BandCurve {
  readonly text: string;
  readonly points: readonly ({ readonly step: number } & Spread)[];
}

/** One plot, and what its horizontal axis shows. */
export interface Axis<Curve> {
  readonly label: string;
  readonly logarithmic: boolean;
  /** Undefined where the curve is not drawn. */
  at(curve: Curve, step: number): number | undefined;
  text(value: number): string;
}

interface Heading {
  readonly title: string;
  readonly subtitle?: string;
  /** Of the vertical axis. */
  readonly label: string;
  /** The vertical axis; a value that is not positive is not drawn. */
  readonly logarithmic?: boolean;
}

/** Told apart by colour, and by dashes where there are more of them. */
const colours = ["#0969da", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#57606a", "#0a7ea4"];
const dashes = ["", "7 3", "2 3", "9 3 2 3"];

const [plotWidth, plotHeight, gap, top, letter] = [400, 310, 16, 48, 6.4];

/** Draws the curves in their order. Undefined where there is no curve, or no axis. */
export function bandCurves<Curve>(
  curves: readonly (Curve & BandCurve)[],
  axes: readonly Axis<Curve>[],
  { label, logarithmic = false, ...heading }: Heading,
): string | undefined {
  if (curves.length === 0 || axes.length === 0) return undefined;
  const columns = Math.min(2, axes.length);
  const place = (i: number) => [(i % columns) * (plotWidth + gap), top + Math.floor(i / columns) * plotHeight] as const;
  const drawn = curves.map((curve, i) => ({
    curve,
    stroke: colours[i % colours.length]!,
    strokeDasharray: dashes[Math.floor(i / colours.length) % dashes.length]!,
  }));
  const legendTop = top + Math.ceil(axes.length / columns) * plotHeight + 20;
  const isLong = curves.some(({ text }) => 44 + 34 + letter * text.length > plotWidth + gap);
  const beside = columns === 2 && !isLong ? 2 : 1; // entries in a row of the legend
  const legend = drawn.map(({ curve, stroke, strokeDasharray }, i) => {
    const [x, y] = [44 + (i % beside) * (plotWidth + gap), legendTop + 18 * Math.floor(i / beside)];
    const line = `<path d="M0 -4h26" stroke="${stroke}" stroke-width="1.8" stroke-dasharray="${strokeDasharray}"/>`;
    return `<g transform="translate(${x} ${y})">${line}<text x="34">${escaped(curve.text)}</text></g>`;
  });
  const plots = axes.map((axis, i) => plot(drawn, axis, { label, logarithmic }, ...place(i)));
  const height = legendTop + 18 * Math.ceil(curves.length / beside) + 4;
  return svg({ width: columns * (plotWidth + gap), height, ...heading }, [...plots, ...legend]);
}

interface Drawn<Curve> {
  readonly curve: Curve;
  readonly stroke: string;
  readonly strokeDasharray: string;
}

function plot<Curve>(
  curves: readonly Drawn<Curve & BandCurve>[],
  axis: Axis<Curve>,
  { label, logarithmic }: { readonly label: string; readonly logarithmic: boolean },
  x: number,
  y: number,
): string {
  const drawable = (value: number | undefined) => Number.isFinite(value) && (value! > 0 || !axis.logarithmic);
  const marks = curves.flatMap(({ curve, stroke, strokeDasharray }) => {
    const points = curve.points
      .map((point) => ({ ...point, at: axis.at(curve, point.step) }))
      .filter(({ at, mean, least }) => drawable(at) && Number.isFinite(mean) && (least > 0 || !logarithmic));
    return [
      areaY(points, { x: "at", y1: "least", y2: "most", fill: stroke, fillOpacity: 0.14 }),
      lineY(points, { x: "at", y: "mean", stroke, strokeDasharray, strokeWidth: 1.8 }),
    ];
  });
  const left = logarithmic ? 58 : 54; // "2e-5" is longer than "0.25"
  const along = axis.logarithmic
    ? { type: "log" as const, tickFormat: powersOfTen(axis.text) }
    : { tickFormat: axis.text, ticks: 5 };
  return chart(x, y, {
    width: plotWidth,
    height: plotHeight,
    marginLeft: left,
    marginBottom: 40,
    x: { ...along, label: axis.label },
    y: { label, grid: true, ticks: 5, labelOffset: left - 8, ...(logarithmic && { type: "log", tickFormat: "~e" }) },
    marks,
  });
}
