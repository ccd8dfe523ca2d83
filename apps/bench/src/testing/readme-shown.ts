/**
 * What README.md shows of the recorded runs: a picture and a table of a few methods, which a stranger reads at once.
 */
import { dot, lineY, ruleX, text } from "@observablehq/plot";
import { chart } from "@terse/pictures/chart";
import { svg } from "@terse/pictures/svg";
import { bytesText } from "@terse/train/format";
import { rates, workers } from "../convergence/convergence.ts";
import { type Curve, curvesOf, fastestPeer, reference, type TimeToLoss } from "../convergence/curves.ts";
import { byCase } from "../measurement.ts";
import type { RecordedLine } from "../recording.ts";
import { rateText } from "../setting-text.ts";
import { table } from "../table.ts";

/** The methods with their names in plain words, below PyTorch's sides, with which they are compared. */
const shown: Readonly<Record<string, string>> = {
  "adamw-terngrad": "AdamW, TernGrad",
  "adamw-qsgd": "AdamW, QSGD 4 bits",
  "zero-one-adam": "0/1 Adam",
  "one-bit-lamb": "1-bit LAMB",
  dion: "Dion, rank 1/4",
  "lion-cub-beta-0.95": "Lion Cub",
  "muon-5-2-bits-of-means": "Muon, every 5th step, 2 bits",
  "muon-4-1-bit": "Muon, every 4th step, 1 bit",
};

/** In the table only: of more than seven curves a picture is hard to read. */
const notDrawn = new Set(["adamw-qsgd", "zero-one-adam", "muon-5-2-bits-of-means"]);

const peers: Readonly<Record<string, string>> = {
  "pytorch-ddp": "PyTorch DDP, AdamW",
  "pytorch-ddp-fp16": "PyTorch DDP, AdamW, fp16",
  "pytorch-ddp-muon": "PyTorch DDP, Muon",
  "pytorch-ddp-powersgd-2": "PyTorch DDP, PowerSGD 2",
  "pytorch-ddp-powersgd-8": "PyTorch DDP, PowerSGD 8",
  "pytorch-ddp-muon-fp16": "PyTorch DDP, Muon, fp16",
  "pytorch-ddp-muon-powersgd-8": "PyTorch DDP, Muon, PowerSGD 8",
  "pytorch-local-sgd-muon-5": "PyTorch local SGD, Muon, every 5th step",
  "pytorch-local-sgd-muon-10": "PyTorch local SGD, Muon, every 10th step",
};
const nameOf = (method: string) => peers[method] ?? shown[method]!;

/** PyTorch's sides first: the fastest at each rate, and the one that most people have. */
const shownCurves = (lines: readonly RecordedLine[]): Curve[] => {
  const curves = curvesOf(lines);
  const values = byCase(lines);
  const fastest = rates.flatMap((rate) => fastestPeer(values, rate)?.method ?? []);
  const names = new Set([...fastest, "pytorch-ddp-fp16", ...Object.keys(shown)]);
  return [...names].flatMap((method) => curves.find((curve) => curve.method === method) ?? []);
};

/** What both documents explain below their tables. */
const markOf = (found: TimeToLoss | undefined) => (found?.oneSeed ? " *" : "");

/** One row a method: what it sends, where it ends, and how much sooner than PyTorch it is where AdamW ends. */
export function readmeTable(lines: readonly RecordedLine[]): string {
  const dense = curvesOf(lines).find(({ method }) => method === reference)!;
  const parameters = dense.bytesPerStep / (((2 * (workers - 1)) / workers) * 4); // an all-reduce of 4 bytes each
  const times = (found: TimeToLoss | undefined) =>
    found?.ratio === undefined ? "–" : `${Number(found.ratio.toPrecision(2))} ×${markOf(found)}`;
  const rows = shownCurves(lines).map((curve) => {
    const bits = (8 * curve.bytesPerStep) / parameters;
    return [
      nameOf(curve.method),
      bits.toPrecision(2),
      curve.last.mean.toFixed(2),
      ...rates.map((rate) => times(curve.toLoss(rate))),
    ];
  });
  const ends = ["bits a parameter and step", "loss at the end", "sooner at AdamW's loss, 100 Mbit/s", "10 Mbit/s"];
  return table(["method", ...ends], rows);
}

/** Every method that reaches AdamW's loss, the soonest on slow links first. */
export function soonestTable(lines: readonly RecordedLine[]): string {
  const curves = curvesOf(lines).flatMap((curve) => {
    const [fast, slow] = rates.map((rate) => curve.toLoss(rate));
    return fast?.ratio === undefined || slow?.ratio === undefined ? [] : [{ ...curve, fast, slow }];
  });
  const rows = curves
    .toSorted((a, b) => a.slow.seconds - b.slow.seconds)
    .map((curve) => {
      const sooner = [curve.fast, curve.slow].map((found) => `${found.ratio!.toFixed(1)}${markOf(found)}`);
      return [curve.method, curve.ratio.mean.toFixed(2), bytesText(curve.bytesPerStep), ...sooner];
    });
  const ends = ["loss at the end ÷ AdamW's", "a worker sends per step", "sooner, 100 Mbit/s", "sooner, 10 Mbit/s"];
  return table(["method", ...ends], rows);
}

const colours = ["#57606a", "#1a7f37", "#0969da", "#8250df", "#9a6700", "#bf3989", "#d1242f", "#1f2328"];
const rate = "10mbit";
const [width, height, marginLeft, marginRight] = [660, 440, 52, 190];

/** The losses by seconds on slow links, each curve named at its end. */
export function readmePicture(lines: readonly RecordedLine[]): string {
  const shown = shownCurves(lines).filter(({ method }) => !notDrawn.has(method));
  const curves = shown.map((curve, i) => {
    const drawn = curve.points.flatMap(({ step, mean }) => {
      const seconds = step > 0 ? curve.secondsAfter(rate, step) : undefined;
      return seconds === undefined ? [] : [{ seconds, loss: mean }];
    });
    return { name: nameOf(curve.method), stroke: colours[i]!, drawn, end: drawn.at(-1)! };
  });
  const all = curves.flatMap(({ drawn }) => drawn);
  const [first, last] = [Math.min(...all.map((one) => one.seconds)), Math.max(...all.map((one) => one.seconds))];
  const [least, most] = [Math.min(...all.map((one) => one.loss)), Math.max(...all.map((one) => one.loss))];
  const row = (most - least) / 17; // of names, which stand below the curves
  const pixels = (seconds: number) => (Math.log(seconds) / Math.log(last / first)) * (width - marginLeft - marginRight);

  // A name begins at the end of its curve, in a row below the names that it would reach.
  const rows: { readonly from: number; readonly row: number }[] = [];
  const marks = curves
    .toSorted((a, b) => b.end.seconds - a.end.seconds)
    .flatMap(({ name, stroke, drawn, end }) => {
      const from = pixels(end.seconds);
      const reached = rows.filter((other) => other.from < from + 7 * name.length + 10);
      rows.push({ from, row: 1 + Math.max(0, ...reached.map(({ row }) => row)) });
      const loss = least - row * (rows.at(-1)!.row + 0.5);
      return [
        lineY(drawn, { x: "seconds", y: "loss", stroke, strokeWidth: 2.2 }),
        dot([end], { x: "seconds", y: "loss", fill: stroke, r: 3.5 }),
        ruleX([end], { x: "seconds", y1: "loss", y2: loss, stroke, strokeOpacity: 0.6 }),
        text([name], { x: [end.seconds], y: [loss], text: [name], dx: 5, fill: stroke, textAnchor: "start" }),
      ];
    });
  const drawn = chart(0, 36, {
    width,
    height,
    marginLeft,
    marginRight,
    marginBottom: 44,
    x: {
      type: "log",
      label: `seconds of training on links of ${rateText(rate)}, logarithmic`,
      grid: true,
      ticks: [3, 10, 30, 100, 300, 1000],
      tickFormat: (seconds: number) => `${seconds} s`,
    },
    y: {
      label: "validation loss, nats per byte",
      grid: true,
      ticks: [2, 3, 4],
      tickFormat: String,
      labelOffset: 42,
      domain: [least - row * (2 + Math.max(...rows.map(({ row }) => row))), most],
    },
    marks,
  });
  const title = `The same training, ${workers} workers on a slow network: lower and further left is better`;
  return svg({ width, height: height + 40, title }, [drawn]);
}
