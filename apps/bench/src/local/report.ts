/** Writes docs/results/local.md: local steps beside messages in every step, their losses and their seconds. */
import { bytesText } from "@terse/train/format";
import { workers as four } from "../convergence/convergence.ts";
import { type Curve, spreadText, tolerance } from "../convergence/curves.ts";
import { byCase, type Values } from "../measurement.ts";
import type { Provenance, RecordedLine } from "../recording.ts";
import { table } from "../table.ts";
import { expectationsText } from "./expectations.ts";
import { budget } from "./local.ts";
import { methods } from "./methods.ts";
import { bitsOf, curvesBeside } from "./pictures.ts";

/** Methods of `bench convergence` that stand beside those with local steps. */
const beside = ["adamw", "muon", "adamw-terngrad", "lion-cub-beta-0.95", "signum"];
const rates = { "10mbit": "10 Mbit/s", "20mbit": "20 Mbit/s", "100mbit": "100 Mbit/s" };

export function localReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const curves = curvesBeside(lines);
  const values = byCase(lines);
  const named = (names: readonly string[]) => names.flatMap((name) => curves.filter(({ method }) => method === name));
  const own = named(Object.keys(methods));
  const whole = own.filter(({ method }) => methods[method]!.steps === undefined);
  const row = (curve: Curve) => [
    curve.method,
    ...roundCells(curve.method, values),
    spreadText(curve.last, curve.seeds),
    curve.ratio.mean.toFixed(3),
    overInside(curve, curves),
    bytesText(curve.bytesPerStep),
    bitsOf(curve, curves).toPrecision(2),
    ...Object.keys(rates).map((rate) => toLossText(curve, rate)),
  ];
  const losses = table(
    [
      "method",
      "H",
      "workers",
      "outer rate, momentum",
      "validation loss, nats per byte",
      "÷ adamw",
      "÷ inside",
      "a worker sends per step",
      "bits a parameter and step",
      ...Object.values(rates).map((text) => `to the loss, ${text}`),
    ],
    [...named(beside), ...whole].map(row),
  );
  const more = [longRuns(own), times(lines, values), expected(lines, curves)].filter(Boolean);
  return `# Local steps

Written by \`./terse bench local --record\`. ${machine}.
The small GPT of [convergence.md](convergence.md), 400 steps. Every worker trains by itself, and all share what they have
found every H steps, by SGD with the outer rate and Nesterov momentum of the table. There are ${four} workers where the
table does not say otherwise. The loss is that of the shared copy.

The search begins at the rate that convergence.md has found for what is inside. It has up to ${budget} runs with the first
seed, for the rate inside and the outer step. Three seeds: the mean, and in parentheses the least and the most. *÷ inside*:
the loss ÷ that of the method inside which sends in every step. Methods that send in every step are those of
convergence.md.

${words(own)}

*To the loss*: the time in which the fastest of PyTorch's sides (on Gloo) reaches the loss that AdamW ends at, within
${((tolerance - 1) * 100).toFixed(1)} %, ÷ the time in which the method does. The losses are those of real runs. The times
of steps with and without a round are means over whole intervals, measured with ${four} processes on links that the kernel
limits. –: not reached, or not measured.

![Validation loss by bits a parameter and step: every method.](local-bits.svg)

${losses}
${more.map((text) => `\n${text}\n`).join("")}
All lines, those of the searches too: [local.jsonl](local.jsonl). Recorded: ${when}.
`;
}

/** What is said of rows whose names have these parts. */
const sentences: readonly (readonly [names: RegExp, sentence: string])[] = [
  [/-f32/, "f32: means in 32 bits."],
  [/-8-bits/, "8 bits: int8 both ways, with error feedback."],
  [/-4-bits(?!-of)/, "4 bits: the codec l1, both ways, with error feedback."],
  [/-bits-of-means/, "Bits of means: the codec bin-means, both ways, with error feedback."],
  [/-1-bit/, "1 bit: the codec scaled-sign, both ways, with error feedback."],
  [/-delay-\d/, "delay-4: a round is used 4 steps after it has left."],
  [/-rebase/, "rebase: what a worker has done in these steps goes on top of the round; else it is given up."],
  [/-workers/, "With another number of workers each takes more or fewer rows, so that a step of all has as many."],
  [/-alone/, "alone: one worker that takes outer steps, with as many rows in a step as four."],
  [
    /-f32|-8-bits|-4-bits-of|-delay|-workers/,
    "Rows of 8 bits, f32 and means of 4 bits, and variants, take the settings of 4 bits; rows with a delay those without.",
  ],
  [/^(diloco|sparse)/, "DiLoCo and SparseLoCo keep the momentum of their papers."],
  [/^lion-/, "lion: plain means, and steps of one rate without weight decay, which are whole numbers of it."],
  [/-whole-numbers/, "Whole numbers: lion-steps, which loses nothing, with the settings of f32."],
  [/^adamw-/, "adamw: plain means, without momentum."],
];

/** The sentences on the rows that are there, a line each. */
function words(own: readonly Curve[]): string {
  const said = sentences.filter(([names]) => own.some(({ method }) => names.test(method)));
  return said.map(([, sentence]) => `- ${sentence}`).join("\n");
}

/** H, workers and the outer step that was chosen. */
function roundCells(method: string, values: Values): string[] {
  const of = methods[method];
  if (!of) return ["1", String(four), "–"];
  const chosen = values.get(`${method}, seed 1`);
  const outer = of.syncEvery === undefined ? "–" : `${chosen?.get("outer_lr")}, ${chosen?.get("momentum")}`;
  return [String(of.syncEvery ?? 1), String(of.workers ?? four), outer];
}

/** The loss ÷ that of what is inside with messages in every step. */
function overInside({ method, last }: Curve, curves: readonly Curve[]): string {
  const inside = curves.find((curve) => curve.method === methods[method]?.inside);
  return inside ? (last.mean / inside.last.mean).toFixed(3) : "–";
}

function toLossText(curve: Curve, rate: string): string {
  const ratio = curve.toLoss(rate)?.ratio;
  return ratio === undefined ? "–" : `**${ratio.toFixed(1)}**`;
}

/** Runs of more steps, beside the synchronous one of as many. */
function longRuns(own: readonly Curve[]): string {
  const long = own.filter(({ method }) => methods[method]!.steps !== undefined);
  if (long.length === 0) return "";
  const synchronous = (steps: number | undefined) =>
    long.find(({ method }) => methods[method]!.syncEvery === undefined && methods[method]!.steps === steps)?.last.mean;
  const rows = long.map(({ method, last }) => {
    const { steps, syncEvery } = methods[method]!;
    const ratio = last.mean / (synchronous(steps) ?? Number.NaN);
    return [
      method,
      String(syncEvery ?? 1),
      String(steps),
      last.mean.toFixed(3),
      Number.isNaN(ratio) ? "–" : ratio.toFixed(3),
    ];
  });
  return `Longer runs, with the first seed and the settings of the short ones, beside synchronous Muon of as many steps:

${table(["method", "H", "steps", "validation loss, nats per byte", "÷ synchronous"], rows)}`;
}

/** Milliseconds on links with a latency, and the work of a round. */
function times(lines: readonly RecordedLine[], values: Values): string {
  const over = [...values].flatMap(([name, metrics]) => {
    const ratio = metrics.get("step_over_no_exchange");
    const ms = (metric: string) => `${metrics.get(metric)?.toFixed(0)} ms`;
    return ratio === undefined ? [] : [[...name.split(", "), ms("step_ms"), ms("no_exchange_ms"), ratio.toFixed(3)]];
  });
  const work = [...values].flatMap(([name, metrics]) => {
    const ratio = metrics.get("round_over_stream");
    return ratio === undefined ? [] : [[name, `${metrics.get("round_ms")!.toFixed(0)} ms`, ratio.toFixed(1)]];
  });
  const parts = [
    lines.some(({ setting }) => setting === "10mbit-50ms") &&
      "On 10 Mbit/s with a latency of 50 ms, which is emulated, so PyTorch cannot be measured on it:\n\n![Validation loss by seconds.](local.svg)",
    over.length > 0 &&
      `Rounds that travel beside steps: the mean over whole intervals, and the same without any message.\n\n${table(["method", "link", "a step", "without messages", "ratio"], over)}`,
    work.length > 0 &&
      `The work of a round on a rank itself: pseudo-gradient, encoding, outer step, mixing; one thread. The ratio is to the time\nin which memory delivers θ̄ and θ once.\n\n${table(["round", "time", "÷ reading θ̄ and θ"], work)}`,
  ];
  return parts.filter(Boolean).join("\n\n");
}

function expected(lines: readonly RecordedLine[], curves: readonly Curve[]): string {
  const text = expectationsText(lines, curves);
  return (
    text &&
    `What is said of local steps, the ratios of the losses with the same seed, and whether they show it (the words as in\n[convergence.md](convergence.md)); and what is asked of them here:\n\n${text}`
  );
}
