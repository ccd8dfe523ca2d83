/** Draws docs/results/convergence.svg and writes its numbers beside it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bytesText } from "@terse/train/format";
import { legend, svg } from "../svg.ts";
import type { Curve } from "./convergence.ts";

const folder = fileURLToPath(new URL("../../../../docs/results/", import.meta.url));
const colours = ["#57606a", "#d1242f", "#0969da", "#1a7f37", "#8250df"];
const [ceiling, floor] = [5.7, 1.9]; // nats per byte
const [width, height, left, right, top, bottom] = [860, 382, 56, 24, 86, 46];

export function lossCurves(curves: readonly Curve[], settings: object): void {
  mkdirSync(folder, { recursive: true });
  const record = { command: "./terse bench convergence", settings, curves };
  writeFileSync(`${folder}convergence.json`, `${JSON.stringify(record, undefined, 1)}\n`);
  writeFileSync(`${folder}convergence.svg`, picture(curves));
}

export function picture(curves: readonly Curve[]): string {
  const half = (width - left - right - 64) / 2;
  const steps = Math.max(...curves.flatMap(({ points }) => points.map(({ step }) => step)));
  const total = (curve: Curve, step: number) => curve.bytesPerStep * step;
  const low = Math.log10(total([...curves].sort((a, b) => a.bytesPerStep - b.bytesPerStep)[0]!, 20));
  const high = Math.log10(Math.max(...curves.map((curve) => total(curve, steps))));
  const y = (loss: number) => top + ((ceiling - loss) / (ceiling - floor)) * (height - top - bottom);
  const bySteps = (step: number) => left + (step / steps) * half;
  const byBytes = (bytes: number) => left + half + 64 + ((Math.log10(bytes) - low) / (high - low)) * half;
  const tick = (bytes: number) => bytesText(bytes).replace(/\.0+ /, " ");
  const path = (points: readonly [number, number][]) =>
    points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");

  const lines = curves.map((curve, i) => {
    const colour = colours[i % colours.length]!;
    const a = path(curve.points.map(({ step, loss }) => [bySteps(step), y(loss)]));
    const b = path(
      curve.points.filter(({ step }) => step >= 20).map(({ step, loss }) => [byBytes(total(curve, step)), y(loss)]),
    );
    return `<path d="${a}" stroke="${colour}"/><path d="${b}" stroke="${colour}"/>`;
  });
  const swatches = curves.map(({ method, points }, i) => {
    const colour = colours[i % colours.length];
    return [`${method}: ${points.at(-1)!.loss.toFixed(2)}`, `<path d="M0 -4h16" stroke="${colour}"/>`] as const;
  });
  const grid = [2, 3, 4, 5].map((loss) => {
    const at = y(loss).toFixed(1);
    return `<path class="grid" d="M${left} ${at}h${half}M${left + half + 64} ${at}h${half}"/><text class="axis" x="${left - 8}" y="${y(loss) + 4}" text-anchor="end">${loss}</text>`;
  });
  const powers = [];
  for (let p = Math.ceil(low); p <= high; p++) powers.push(p);
  const ticks = [
    ...[0, steps / 4, steps / 2, (3 * steps) / 4, steps].map(
      (s) => `<text class="axis" x="${bySteps(s)}" y="${height - bottom + 18}" text-anchor="middle">${s}</text>`,
    ),
    ...powers.map(
      (p) =>
        `<text class="axis" x="${byBytes(10 ** p)}" y="${height - bottom + 18}" text-anchor="middle">${tick(10 ** p)}</text>`,
    ),
  ];
  const title = `Validation loss of the small GPT over ${steps} steps on 4 workers: lower is better, and further left is less sent`;
  const style = "path{fill:none;stroke-width:2;stroke-linejoin:round}";
  return svg({ width, height, title, style }, [
    legend(swatches.slice(0, 3), 16, 46),
    legend(swatches.slice(3), 16, 66),
    ...grid,
    ...ticks,
    ...lines,
    `<text class="axis" x="${left + half / 2}" y="${height - 8}" text-anchor="middle">steps</text>`,
    `<text class="axis" x="${left + 1.5 * half + 64}" y="${height - 8}" text-anchor="middle">bytes that one worker has sent</text>`,
    `<text class="axis" x="14" y="${height / 2}" text-anchor="middle" transform="rotate(-90 14 ${height / 2})">validation loss, nats per byte</text>`,
  ]);
}
