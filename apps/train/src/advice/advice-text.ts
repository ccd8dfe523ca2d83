/** Advice in words: what the network costs, and a table of methods with their predicted step times. */
import { linkText } from "@terse/collectives";
import { bytesText } from "../format.ts";
import type { Advice } from "./advise.ts";

const milliseconds = (seconds: number) => `${Number((1000 * seconds).toPrecision(3)).toLocaleString("en-US")} ms`;

/** `name` is that of the run's own method. */
export function adviceText({ measured, network, rows, leftOut }: Advice, name: string): string[] {
  const { step, exposed, computing, sentBytes } = measured;
  const { alpha, beta } = network.link;
  const share = Math.round((100 * exposed) / step);
  const dense = rows.find((row) => row.name.endsWith("dense f32"));
  const width = Math.max(`this run: ${name}`.length, ...rows.map((row) => row.name.length));
  const line = (label: string, bytes: number, seconds: number, waiting: number, how: string) =>
    `  ${label.padEnd(width)}  ${bytesText(Math.round(bytes)).padStart(9)}  ${milliseconds(seconds).padStart(9)}  ${milliseconds(waiting).padStart(9)}  ${how}`;
  return [
    `advice: of ${milliseconds(step)} a step, ${milliseconds(computing)} are computing, and ${milliseconds(exposed)} (${share}%) waiting for messages`,
    `network: α ${milliseconds(alpha)}, 1/β ${linkText({ bitsPerSecond: Number((beta > 0 ? 8 / beta : 1e15).toPrecision(3)), latency: 0 })}`,
    `  ${"method".padEnd(width)}  ${"sent".padStart(9)}  ${"step".padStart(9)}  ${"waiting".padStart(9)}`,
    line(`this run: ${name}`, sentBytes, step, exposed, "measured"),
    ...rows.map((row) => line(row.name, row.bytes, row.step, row.exposed, "predicted")),
    ...leftOut,
    ...verdicts(step, rows, dense),
  ];
}

function verdicts(step: number, rows: Advice["rows"], dense: Advice["rows"][number] | undefined): string[] {
  const [best] = rows;
  if (!best) return [];
  if (dense && dense.step <= 1.05 * best.step)
    return ["dense is fast here: no method is predicted to be more than 5% faster than 32-bit data parallel"];
  if (step < 1.1 * best.step) return ["this run is about as fast as any of them"];
  const other = best.everyStep ? undefined : rows.find(({ everyStep }) => everyStep);
  const times = (row: Advice["rows"][number]) => (step / row.step).toFixed(1);
  return [
    `${best.name} would be about ${times(best)} times as fast as this run; whether it trains as well, a short run shows`,
    ...(other ? [`of those that send in every step, ${other.name} is the fastest: ${times(other)} times`] : []),
  ];
}
