/** The picture of recorded runs: validation loss by steps and by bytes sent, the mean over the seeds in a band from the least to the most. */
import { bytesText } from "@terse/train/format";
import type { RecordedLine } from "../recording.ts";
import { legend, svg } from "../svg.ts";
import { type Curve, curvesOf, seedsText } from "./curves.ts";

const colours = ["#9a6700", "#57606a", "#d1242f", "#0969da", "#1a7f37", "#8250df"];
const [width, height, left, right, top, bottom] = [860, 402, 56, 24, 106, 46];
const between = 64; // the two plots

export function lossCurves(lines: readonly RecordedLine[]): string {
  const curves = curvesOf(lines);
  const half = (width - left - right - between) / 2;
  const middle = left + half + between; // where the second plot begins
  const losses = curves.flatMap(({ points }) => points.flatMap(({ least, most }) => [least, most]));
  const [floor, ceiling] = [Math.min(...losses) - 0.1, Math.max(...losses) + 0.1];
  const steps = Math.max(...curves.flatMap(({ points }) => points.map(({ step }) => step)));
  const first = Math.min(...curves.flatMap(({ points }) => points.map(({ step }) => step)).filter((step) => step > 0));
  const total = (curve: Curve, step: number) => curve.bytesPerStep * step;
  const low = Math.log10(Math.min(...curves.map((curve) => total(curve, first))));
  const high = Math.log10(Math.max(...curves.map((curve) => total(curve, steps))));
  const y = (loss: number) => top + ((ceiling - loss) / (ceiling - floor)) * (height - top - bottom);
  const bySteps = (step: number) => left + (step / steps) * half;
  const byBytes = (bytes: number) => middle + ((Math.log10(bytes) - low) / (high - low)) * half;
  const tick = (bytes: number) => bytesText(bytes).replace(/\.0+ /, " ");
  const path = (points: readonly (readonly [number, number])[]) =>
    points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");

  const drawn = curves.flatMap((curve, i) => {
    const colour = colours[i % colours.length]!;
    const draw = (points: Curve["points"], x: (step: number) => number) => {
      const band = [
        ...points.map(({ step, most }) => [x(step), y(most)] as const),
        ...points.toReversed().map(({ step, least }) => [x(step), y(least)] as const),
      ];
      const mean = points.map(({ step, mean }) => [x(step), y(mean)] as const);
      return `<path class="band" d="${path(band)}Z" fill="${colour}"/><path d="${path(mean)}" stroke="${colour}"/>`;
    };
    const sent = curve.points.filter(({ step }) => step > 0);
    return [draw(curve.points, bySteps), draw(sent, (step) => byBytes(total(curve, step)))];
  });
  const swatches = curves.map(({ method, last }, i) => {
    const spread = last.most > last.least ? ` (${last.least.toFixed(3)} to ${last.most.toFixed(3)})` : "";
    const sample = `<path d="M0 -4h16" stroke="${colours[i % colours.length]}"/>`;
    return [`${method}: ${last.mean.toFixed(3)}${spread}`, sample] as const;
  });
  const whole = Array.from({ length: 10 }, (_, loss) => loss).filter((loss) => loss > floor && loss < ceiling);
  const grid = whole.map((loss) => {
    const at = y(loss).toFixed(1);
    return `<path class="grid" d="M${left} ${at}h${half}M${middle} ${at}h${half}"/><text class="axis" x="${left - 8}" y="${y(loss) + 4}" text-anchor="end">${loss}</text>`;
  });
  const label = (x: number, text: string | number) =>
    `<text class="axis" x="${x.toFixed(1)}" y="${height - bottom + 18}" text-anchor="middle">${text}</text>`;
  const powers = Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, i) => 10 ** (Math.ceil(low) + i));
  // The ticks between two powers of ten stand closer and closer, as on any logarithmic axis.
  const minor = [10 ** (Math.ceil(low) - 1), ...powers]
    .flatMap((power) => [1, 2, 3, 4, 5, 6, 7, 8, 9].map((digit) => digit * power))
    .filter((bytes) => bytes >= 10 ** low && bytes <= 10 ** high)
    .map((bytes) => `<path class="grid" d="M${byBytes(bytes).toFixed(1)} ${height - bottom}v4"/>`);
  const title = `Validation loss of the default recipe, 4 workers, ${seedsText(curves)}: the mean, in a band from the least to the most`;
  const style =
    "path{stroke-width:2;stroke-linejoin:round}path:not(.band){fill:none}.band{stroke:none;fill-opacity:.18}";
  const axis = (x: number, text: string) =>
    `<text class="axis" x="${x}" y="${height - 8}" text-anchor="middle">${text}</text>`;
  return svg({ width, height, title, style }, [
    ...[0, 2, 4].map((i) => legend(swatches.slice(i, i + 2), 16, 46 + 10 * i)),
    ...grid,
    ...minor,
    ...[0, steps / 4, steps / 2, (3 * steps) / 4, steps].map((step) => label(bySteps(step), step)),
    ...powers.map((bytes) => label(byBytes(bytes), tick(bytes))),
    ...drawn,
    axis(left + half / 2, "steps"),
    axis(middle + half / 2, "bytes that one worker has sent, logarithmic"),
    `<text class="axis" x="14" y="${(top + height - bottom) / 2}" text-anchor="middle" transform="rotate(-90 14 ${(top + height - bottom) / 2})">validation loss, nats per byte</text>`,
  ]);
}
