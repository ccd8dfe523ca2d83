/**
 * Pictures of recorded runs: the validation loss of each method by steps, by bytes and by seconds, means over the seeds
 * in bands.
 */
import { bytesText } from "@terse/train/format";
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

const [plotWidth, plotHeight, left, gap, top] = [352, 270, 56, 64, 48];
const bottom = 46; // below a plot: numbers and the axis' label

export interface Heading {
  readonly title: string;
  readonly subtitle?: string;
}

/** Undefined where there is no curve. */
export function lossCurves(curves: readonly Curve[], axes: readonly Axis[], heading: Heading): string | undefined {
  if (curves.length === 0) return undefined;
  const columns = Math.min(2, axes.length);
  const width = left + columns * plotWidth + (columns - 1) * gap + 24;
  const rows = Math.ceil(axes.length / columns);
  const legendTop = top + rows * (plotHeight + bottom) + 20;
  const sorted = [...curves].sort((a, b) => a.last.mean - b.last.mean);
  const style =
    "path{stroke-width:1.8;stroke-linejoin:round}path:not(.band){fill:none}.band{stroke:none;fill-opacity:.14}";
  const pens = sorted.map((_, i) => {
    const dash = dashes[Math.floor(i / colours.length) % dashes.length];
    return { colour: colours[i % colours.length]!, dash: dash ? ` stroke-dasharray="${dash}"` : "" };
  });
  const legend = sorted.map(({ method, last, seeds }, i) => {
    const [x, y] = [left + (i % 2) * (plotWidth + gap), legendTop + 18 * Math.floor(i / 2)];
    const { colour, dash } = pens[i]!;
    return `<g transform="translate(${x} ${y})"><path d="M0 -4h26" stroke="${colour}"${dash}/><text x="34">${method}: ${spreadText(last, seeds)}</text></g>`;
  });
  const plots = axes.map((axis, i) => {
    const [x, y] = [left + (i % columns) * (plotWidth + gap), top + Math.floor(i / columns) * (plotHeight + bottom)];
    return `<g transform="translate(${x} ${y})">${plot(sorted, pens, axis)}</g>`;
  });
  const height = legendTop + 18 * Math.ceil(sorted.length / 2) + 4;
  return svg({ width, height, ...heading, style }, [...plots, ...legend]);
}

function plot(curves: readonly Curve[], pens: readonly { colour: string; dash: string }[], axis: Axis): string {
  const finite = (value: number | undefined): value is number => value !== undefined && Number.isFinite(value);
  const drawable = (value: number | undefined): value is number => finite(value) && (value > 0 || !axis.logarithmic);
  const losses = curves.flatMap(({ points }) => points.flatMap(({ least, most }) => [least, most]).filter(finite));
  const [floor, ceiling] = [Math.min(...losses) - 0.1, Math.max(...losses) + 0.1];
  const values = curves.flatMap((curve) => curve.points.map(({ step }) => axis.at(curve, step)).filter(drawable));
  const scale = (value: number) => (axis.logarithmic ? Math.log10(value) : value);
  const [low, high] = [scale(Math.min(...values)), scale(Math.max(...values))];
  const x = (value: number) => ((scale(value) - low) / (high - low || 1)) * plotWidth;
  const y = (loss: number) => ((ceiling - loss) / (ceiling - floor)) * plotHeight;
  const path = (points: readonly (readonly [number, number])[]) =>
    points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");

  const drawn = curves.map((curve, i) => {
    const shown = curve.points.flatMap((point) => {
      const value = axis.at(curve, point.step);
      return drawable(value) && finite(point.mean) ? [{ ...point, at: x(value) }] : [];
    });
    if (shown.length === 0) return "";
    const band = [
      ...shown.map(({ at, most }) => [at, y(most)] as const),
      ...shown.toReversed().map(({ at, least }) => [at, y(least)] as const),
    ];
    const mean = path(shown.map(({ at, mean }) => [at, y(mean)] as const));
    const { colour, dash } = pens[i]!;
    return `<path class="band" d="${path(band)}Z" fill="${colour}"/><path d="${mean}" stroke="${colour}"${dash}/>`;
  });
  const grid = [1, 2, 3, 4, 5, 6]
    .filter((loss) => loss > floor && loss < ceiling)
    .map(
      (loss) =>
        `<path class="grid" d="M0 ${y(loss).toFixed(1)}h${plotWidth}"/><text class="axis" x="-8" y="${(y(loss) + 4).toFixed(1)}" text-anchor="end">${loss}</text>`,
    );
  const tick = (value: number) =>
    `<text class="axis" x="${x(value).toFixed(1)}" y="${plotHeight + 16}" text-anchor="middle">${axis.text(value)}</text>`;
  const powers = Array.from(
    { length: Math.max(0, Math.floor(high) - Math.ceil(low) + 1) },
    (_, i) => 10 ** (Math.ceil(low) + i),
  );
  const quarters = [0, 1, 2, 3, 4].map((quarter) => low + (quarter * (high - low)) / 4);
  // The ticks between two powers of ten stand closer and closer, as on any logarithmic axis.
  const minor = [10 ** (Math.ceil(low) - 1), ...powers]
    .flatMap((power) => [1, 2, 3, 4, 5, 6, 7, 8, 9].map((digit) => digit * power))
    .filter((value) => Math.log10(value) >= low && Math.log10(value) <= high)
    .map((value) => `<path class="grid" d="M${x(value).toFixed(1)} ${plotHeight}v4"/>`);
  return [
    ...grid,
    ...(axis.logarithmic ? [...minor, ...powers.map(tick)] : quarters.map(tick)),
    ...drawn,
    `<text class="axis" x="${plotWidth / 2}" y="${plotHeight + 34}" text-anchor="middle">${axis.label}</text>`,
    `<text class="axis" x="-38" y="${plotHeight / 2}" text-anchor="middle" transform="rotate(-90 -38 ${plotHeight / 2})">validation loss, nats per byte</text>`,
  ].join("\n");
}
