/** Writes docs/results/cost-model.md: predicted and measured times. */
import type { Measurement } from "../measurement.ts";
import type { Provenance } from "../recording.ts";
import { table } from "../table.ts";

export function report(measurements: readonly Measurement[], { machine, when }: Provenance): string {
  const cases = new Map<string, Record<string, number>>();
  for (const { case: what, metric, value } of measurements) cases.set(what, { ...cases.get(what), [metric]: value });
  const rows = [...cases];
  const links = rows.filter(([, { rate }]) => rate !== undefined);
  const worst = rows.filter(([, { worst_error }]) => worst_error !== undefined);
  const exchanges = rows.filter(([, { predicted }]) => predicted !== undefined);
  const small = Math.min(...exchanges.map(([what]) => elementsOf(what)));
  const number = (value: number | undefined) => String(Number((value ?? 0).toPrecision(3)));
  const percent = (value: number | undefined) => `${(100 * (value ?? 0)).toFixed(1)} %`;
  return `# Times of exchanges, predicted and measured

Written by \`./terse bench cost-model --record\`. ${machine}. Over \`tcp\` each rank is a process on a host of its
own (a network namespace), behind a link that the kernel shapes in both directions; over \`loopback\` and Gloo all ranks are in one process, and
their links are emulated. α, β and the codecs' speed are measured first, on the same group, and the predictions use nothing else. Every exchange
begins after a pause of 10 ms, as after a step's backward, in which the token bucket of a shaped link fills. Times are those of the slowest rank, from
its call just after a barrier to its result; medians of at least five.

![Measured over predicted time of each exchange; nearly all lie on the diagonal.](cost-model.svg)

${missesText(exchanges)}

A vote of ${elementsText(small)} elements is latency alone, in two ways that the predictions leave out:

- over \`tcp\` most of them take longer than predicted. α and the overhead of an exchange are measured with the scheme \`all-to-all\`. Schemes with
  more messages one after the other (\`count\`, \`parameter-server-efficient\`, \`hierarchical\`) probably wake threads that have slept again
  meanwhile, and every scheme does other work around its collectives;
- on emulated links a server's small votes take less: an emulated link delays what a rank sends, not what it receives, so the votes that go
  to one server at the same time do not wait for each other there. On a link that the kernel shapes they do, as predicted.

The error of the worst prediction:

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

const tolerance = 0.15;

/** How many predictions miss, which ones, and by how much. */
function missesText(exchanges: readonly (readonly [what: string, values: Record<string, number>])[]): string {
  const misses = exchanges.filter(([, { error = 0 }]) => Math.abs(error) > tolerance);
  const all = `${misses.length} of ${exchanges.length} predictions are off by more than ${100 * tolerance} %`;
  if (misses.length === 0) return `${all}.`;
  const lengths = [...new Set(misses.map(([what]) => elementsOf(what)))].sort((a, b) => a - b);
  const worst = Math.max(...misses.map(([, { error = 0 }]) => Math.abs(error)));
  const most = Math.max(...misses.map(([, { predicted = 0, measured = 0 }]) => Math.abs(predicted - measured)));
  const longest = Math.max(...misses.map(([, { measured = 0 }]) => measured));
  return `${all}, all of them of ${lengths.map(elementsText).join(" or ")} elements: by up to ${(100 * worst).toFixed(0)} %, or ${most.toFixed(1)} ms, of exchanges that take up to ${longest.toFixed(1)} ms.`;
}

/** "vote count 16384 tcp 1gbit ×2" → 16384. */
const elementsOf = (what: string): number => Number(/ (\d+) /.exec(what)?.[1]);

const elementsText = (n: number): string => (n % 2 ** 20 === 0 ? `${n / 2 ** 20} Mi` : `${n / 2 ** 10} Ki`);
