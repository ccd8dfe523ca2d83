/** Writes docs/results/cost-model.md: predicted and measured times. */
import type { Measurement } from "../measurement.ts";
import type { Provenance } from "../recording.ts";

export function report(measurements: readonly Measurement[], { machine, when }: Provenance): string {
  const cases = new Map<string, Record<string, number>>();
  for (const { case: what, metric, value } of measurements) cases.set(what, { ...cases.get(what), [metric]: value });
  const rows = [...cases];
  const links = rows.filter(([, { rate }]) => rate !== undefined);
  const worst = rows.filter(([, { worst_error }]) => worst_error !== undefined);
  const exchanges = rows.filter(([, { predicted }]) => predicted !== undefined);
  const number = (value: number | undefined) => String(Number((value ?? 0).toPrecision(3)));
  const percent = (value: number | undefined) => `${(100 * (value ?? 0)).toFixed(1)} %`;
  const table = (head: readonly string[], lines: readonly (readonly string[])[]) =>
    [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  return `# Times of exchanges, predicted and measured

Written by \`./terse bench cost-model --record\`. ${machine}. Over \`tcp\` each rank is a process on a host of its
own (a network namespace), behind a link that the kernel shapes in both directions; over \`loopback\` and Gloo all ranks are in one process, and
their links are emulated. α, β and the codecs' speed are measured first, on the same group, and the predictions use nothing else. Every exchange
begins after a pause of 10 ms, as after a step's backward, in which the token bucket of a shaped link fills. Times are those of the slowest rank, from
its call just after a barrier to its result; medians of at least five.

![Measured over predicted time of each exchange; nearly all lie on the diagonal.](cost-model.svg)

The error of the worst prediction. Small votes have 16 Ki elements and are latency alone: waking threads, and the work of schemes around
their collectives. On an emulated link the bytes of small messages cost time on the sender's side only, so a server's small votes are faster there
than on a link that the kernel shapes.

${table(
  ["group, link", "exchanges", "small votes"],
  worst.map(([what, { worst_error, worst_error_small }]) => [what, percent(worst_error), percent(worst_error_small)]),
)}

The measured links:

${table(
  [
    "group, link, ranks",
    "α, µs",
    "α of more than 8 KiB, µs",
    "further message, µs",
    "overhead of an exchange, µs",
    "Mbit/s",
    "burst, KiB",
    "measuring, s",
  ],
  links.map(([what, { alpha, alpha_long, per_message, per_exchange, rate, burst = 0, measuring }]) => [
    what,
    ...[alpha, alpha_long, per_message, per_exchange, rate, burst / 1024, measuring].map(number),
  ]),
)}

Every exchange, by elements, group, link and ranks:

${table(
  ["exchange", "predicted, ms", "measured, ms", "error"],
  exchanges.map(([what, { predicted, measured, error }]) => [
    what,
    number(predicted),
    number(measured),
    percent(error),
  ]),
)}

All lines: [cost-model.jsonl](cost-model.jsonl). Recorded: ${when}.
`;
}
