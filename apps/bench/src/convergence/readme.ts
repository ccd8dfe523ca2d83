/**
 * What README.md shows of the recorded runs: a picture and a table of a few methods, which a stranger reads at once.
 */
import { bytesText } from "@terse/train/format";
import type { RecordedLine } from "../recording.ts";
import { rateText, svg } from "../svg.ts";
import { workers } from "./convergence.ts";
import { baseline, type Curve, curvesOf, reference } from "./curves.ts";

/** The methods, with their names in plain words; the first one is what the others are compared with. */
const shown: Readonly<Record<string, string>> = {
  [baseline]: "PyTorch DDP, AdamW",
  "adamw-terngrad": "AdamW, TernGrad",
  "adamw-qsgd": "AdamW, QSGD 4 bits",
  "zero-one-adam": "0/1 Adam",
  "one-bit-lamb": "1-bit LAMB",
  dion: "Dion, rank 1/4",
  "lion-cub-beta-0.95": "Lion Cub",
};

const shownCurves = (lines: readonly RecordedLine[]): Curve[] => {
  const curves = curvesOf(lines);
  return Object.keys(shown).flatMap((method) => curves.find((curve) => curve.method === method) ?? []);
};

/** One row a method: what it sends, where it ends, and how much sooner than PyTorch's DDP it is where AdamW ends. */
export function readmeTable(lines: readonly RecordedLine[]): string {
  const dense = curvesOf(lines).find(({ method }) => method === reference)!;
  const parameters = dense.bytesPerStep / (((2 * (workers - 1)) / workers) * 4); // an all-reduce of 4 bytes each
  const times = (ratio: number | undefined) => (ratio === undefined ? "–" : `${Number(ratio.toPrecision(2))} ×`);
  const rows = shownCurves(lines).map((curve) => {
    const bits = (8 * curve.bytesPerStep) / parameters;
    const cells = [
      shown[curve.method]!,
      bits.toPrecision(2),
      curve.last.mean.toFixed(2),
      times(curve.timeToLoss("100mbit")),
      times(curve.timeToLoss("10mbit")),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| method | bits sent for a parameter and step | loss at the end | sooner at AdamW's loss, 100 Mbit/s | 10 Mbit/s |",
    "|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}

/** Every method that reaches AdamW's loss, the soonest on slow links first. */
export function soonestTable(lines: readonly RecordedLine[]): string {
  const curves = curvesOf(lines).flatMap((curve) => {
    const [fast, slow] = [curve.timeToLoss("100mbit"), curve.timeToLoss("10mbit")];
    return fast === undefined || slow === undefined ? [] : [{ ...curve, fast, slow }];
  });
  const rows = curves
    .toSorted((a, b) => b.slow - a.slow)
    .map(({ method, ratio, bytesPerStep, fast, slow }) => {
      const cells = [method, ratio.mean.toFixed(2), bytesText(bytesPerStep), fast.toFixed(1), slow.toFixed(1)];
      return `| ${cells.join(" | ")} |`;
    });
  return [
    "| method | loss at the end ÷ AdamW's | a worker sends per step | sooner, 100 Mbit/s | sooner, 10 Mbit/s |",
    "|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}

const colours = ["#57606a", "#1a7f37", "#0969da", "#8250df", "#9a6700", "#bf3989", "#d1242f"];
const [left, top, plotWidth, plotHeight, right, bottom] = [60, 48, 660, 380, 100, 52];
const namesHeight = 90; // below the curves
const rate = "10mbit";

/** The losses by seconds on slow links, each curve named at its end. */
export function readmePicture(lines: readonly RecordedLine[]): string {
  const curves = shownCurves(lines).map((curve) => ({
    ...curve,
    drawn: curve.points.flatMap(({ step, mean }) => {
      const seconds = step > 0 ? curve.secondsAfter(rate, step) : undefined;
      return seconds === undefined ? [] : [{ seconds, loss: mean }];
    }),
  }));
  const all = curves.flatMap(({ drawn }) => drawn);
  const [first, last] = [
    Math.min(...all.map(({ seconds }) => seconds)),
    Math.max(...all.map(({ seconds }) => seconds)),
  ];
  const [floor, ceiling] = [Math.min(...all.map(({ loss }) => loss)), Math.max(...all.map(({ loss }) => loss))];
  const x = (seconds: number) => left + (Math.log(seconds / first) / Math.log(last / first)) * plotWidth;
  const y = (loss: number) => top + ((ceiling - loss) / (ceiling - floor)) * (plotHeight - namesHeight);

  const ticks = [1, 3, 10, 30, 100, 300, 1000]
    .filter((seconds) => seconds >= first && seconds <= last)
    .map((seconds) => {
      const at = x(seconds).toFixed(1);
      return `<path class="grid" d="M${at} ${top}v${plotHeight}"/><text class="axis" x="${at}" y="${top + plotHeight + 18}" text-anchor="middle">${seconds} s</text>`;
    });
  const losses = [2, 3, 4, 5]
    .filter((loss) => loss > floor && loss < ceiling)
    .map((loss) => {
      const at = y(loss).toFixed(1);
      return `<path class="grid" d="M${left} ${at}h${plotWidth}"/><text class="axis" x="${left - 8}" y="${(y(loss) + 4).toFixed(1)}" text-anchor="end">${loss}</text>`;
    });

  // Names stand below the ends of their curves, each in the first row that has room.
  const rows: number[] = []; // where each is free
  const names = curves
    .map((curve, i) => ({ ...curve, colour: colours[i]!, end: curve.drawn.at(-1)! }))
    .toSorted((a, b) => a.end.seconds - b.end.seconds)
    .map((curve) => {
      const [at, half] = [x(curve.end.seconds), 3.4 * shown[curve.method]!.length + 6];
      const free = rows.findIndex((end) => end < at - half);
      const row = free < 0 ? rows.length : free;
      rows[row] = at + half;
      return { ...curve, at, below: top + plotHeight - namesHeight + 22 + 16 * row };
    });
  const drawn = names.map(({ method, drawn, colour, end, at, below }) => {
    const path = drawn.map(({ seconds, loss }, i) => `${i ? "L" : "M"}${x(seconds).toFixed(1)} ${y(loss).toFixed(1)}`);
    return `<path d="${path.join("")}" stroke="${colour}"/><circle cx="${at.toFixed(1)}" cy="${y(end.loss).toFixed(1)}" r="3.5" fill="${colour}"/>
<path class="lead" d="M${at.toFixed(1)} ${(y(end.loss) + 6).toFixed(1)}V${(below - 11).toFixed(1)}" stroke="${colour}"/><text x="${at.toFixed(1)}" y="${below.toFixed(1)}" text-anchor="middle" style="fill:${colour}">${shown[method]}</text>`;
  });
  const axes = [
    `<text class="axis" x="${left + plotWidth / 2}" y="${top + plotHeight + 40}" text-anchor="middle">seconds of training on links of ${rateText(rate)}, logarithmic</text>`,
    `<text class="axis" x="22" y="${top + plotHeight / 2}" text-anchor="middle" transform="rotate(-90 22 ${top + plotHeight / 2})">validation loss, nats per byte</text>`,
  ];
  return svg(
    {
      width: left + plotWidth + right,
      height: top + plotHeight + bottom,
      title: `The same training, ${workers} workers on a slow network: lower and further left is better`,
      style: "path{fill:none;stroke-width:2.2;stroke-linejoin:round}.lead{stroke-width:1;stroke-opacity:.6}",
    },
    [...ticks, ...losses, ...drawn, ...axes],
  );
}
