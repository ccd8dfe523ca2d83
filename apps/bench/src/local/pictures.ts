/**
 * Pictures of local steps: loss by seconds on a slow link with a latency, and loss by bits, beside all other methods.
 */
import { dot, text } from "@observablehq/plot";
import { chart } from "@terse/pictures/chart";
import { legend, svg } from "@terse/pictures/svg";
import { type Curve, curvesOf } from "../convergence/curves.ts";
import { bySeconds, lossCurves } from "../convergence/loss-curves.ts";
import { recordedLines } from "../papers/recorded.ts";
import type { RecordedLine } from "../recording.ts";
import { methods } from "./methods.ts";

/** The link of the picture of seconds. */
const slow = "10mbit-50ms";

/** The curves of the methods of this suite, and of those of `bench convergence` beside them. */
export function curvesBeside(lines: readonly RecordedLine[]): Curve[] {
  return lines.length === 0 ? [] : curvesOf([...recordedLines("convergence"), ...lines]);
}

/** A parameter's bits in a step: a worker of four sends 1.5 · 32 of them densely. */
export function bitsOf(curve: Curve, curves: readonly Curve[]): number {
  const dense = curves.find(({ method }) => method === "adamw")?.bytesPerStep ?? Number.NaN;
  return (48 * curve.bytesPerStep) / dense;
}

export function secondsPicture(lines: readonly RecordedLine[]): string | undefined {
  const axis = bySeconds(slow, "10 Mbit/s and 50 ms");
  const last = ({ points }: Curve) => points.at(-1)!.step;
  const timed = curvesBeside(lines).filter((curve) => axis.at(curve, last(curve)) !== undefined);
  return lossCurves(timed, [axis], { title: "Validation loss of a small GPT, 4 workers" });
}

const [width, height, most, line] = [860, 640, 2.75, 11];

/** Every method at its last loss and its bits a parameter and step; those above the picture are left out. */
export function bitsPicture(lines: readonly RecordedLine[]): string | undefined {
  const curves = curvesBeside(lines);
  if (!curves.some(({ method }) => method in methods)) return undefined;
  const points = curves.flatMap((curve) => {
    const own = methods[curve.method];
    const isOther = own?.steps !== undefined || own?.workers !== undefined;
    const bits = bitsOf(curve, curves);
    const [{ method }, loss] = [curve, curve.last.mean];
    return isOther || !(bits > 0) || !(loss < most) ? [] : [{ method, bits, loss, colour: own ? "own" : "peer" }];
  });
  const losses = points.map(({ loss }) => loss);
  const [least, top, left, right] = [Math.min(...losses) - 0.03, 60, 52, 10];
  const bits = points.map((point) => point.bits);
  const domain = [0.7 * Math.min(...bits), 2.2 * Math.max(...bits)];
  const heights = (loss: number) => (height - 50) * ((most - loss) / (most - least)); // about where it is drawn
  const place = (at: number) =>
    ((width - left - right) * Math.log(at / domain[0]!)) / Math.log(domain[1]! / domain[0]!);
  const labels = apart(points, ({ method, bits, loss }) => ({
    x: place(bits) + 5,
    y: heights(loss),
    width: 6 * method.length + 8,
  }));
  const marks = ["peer", "own"].flatMap((colour) => {
    const of = points.filter((point) => point.colour === colour);
    return [dot(of, { x: "bits", y: "loss", r: 3.5, stroke: "none", className: colour })];
  });
  const names = labels.map(({ of, shift }) =>
    text([of], { x: "bits", y: "loss", text: "method", textAnchor: "start", dx: 7, dy: shift, fontSize: 10 }),
  );
  const swatches = [
    ["local steps with an outer step", circle("own")],
    ["a message in every step", circle("peer")],
  ] as const;
  const plot = chart(0, top, {
    width,
    height,
    marginLeft: left,
    marginRight: right,
    marginBottom: 40,
    x: {
      type: "log",
      domain,
      label: "bits a parameter and step that a worker sends, logarithmic",
      ticks: 6,
      tickFormat: "~g",
    },
    y: { domain: [least, most], label: "validation loss, nats per byte", grid: true, labelOffset: 44 },
    marks: [...marks, ...names],
  });
  const title = "Validation loss of a small GPT after 400 steps by what a worker of four sends";
  return svg({ width, height: top + height + 6, title }, [legend(swatches, 16, 46), plot]);
}

const circle = (colour: string) => `<circle class="${colour}" cx="8" cy="-4" r="4"/>`;

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/** By how much each label moves up or down so that none covers another, or a point. */
function apart<Point>(points: readonly Point[], boxOf: (point: Point) => Box): { of: Point; shift: number }[] {
  const placed: Box[] = points.map((point) => ({ ...boxOf(point), x: boxOf(point).x - 9, width: 8 }));
  const isFree = ({ x, y, width }: Box) =>
    placed.every((box) => Math.abs(box.y - y) >= line || box.x + box.width < x || x + width < box.x);
  return points
    .toSorted((a, b) => boxOf(a).y - boxOf(b).y)
    .map((of) => {
      const box = boxOf(of);
      const shifts = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? 1 : -1) * Math.ceil(i / 2) * (line / 3));
      const shift = shifts.find((each) => isFree({ ...box, y: box.y + each })) ?? 0;
      placed.push({ ...box, y: box.y + shift });
      return { of, shift };
    });
}
