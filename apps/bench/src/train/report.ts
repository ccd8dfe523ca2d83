/** The report and the picture of a recorded run of `bench train`. */
import { byCase, type Measurement, settingsOf } from "../measurement.ts";
import { type Panel, panels, timeText } from "../panels.ts";
import type { Provenance } from "../recording.ts";
import { settingText } from "../setting-text.ts";
import { table } from "../table.ts";
import { links, projectedSuffix } from "./projection.ts";
import { hooks, ours, oursOfMethods, peers, peersOfMethods, powersgdOf } from "./sides.ts";

const sides = [...new Set([...ours, ...oursOfMethods, ...peersOfMethods, ...peers, ...hooks].map(({ name }) => name))];

const isProjected = ({ case: name }: Measurement) => name.endsWith(projectedSuffix);
const measuredOf = (all: readonly Measurement[]) => all.filter((each) => !isProjected(each));

export function trainPicture(measurements: readonly Measurement[]): string | undefined {
  const values = byCase(measuredOf(measurements));
  const shown = settingsOf(values, sides);
  return panels({
    title: "A training step of the small GPT (4.18 M parameters): shorter is better",
    own: "ours",
    waiting: "waiting after backward",
    peer: "PyTorch",
    peerWaiting: "waiting after its last gradient",
    notRecorded: "waiting not recorded",
    panels: shown.map((setting): Panel => {
      const bars = sides.flatMap((side) => {
        const metrics = values.get(`${side} ${setting}`);
        if (!metrics) return [];
        const value = metrics.get("step_ms")!;
        const peer = side.startsWith("pytorch");
        const share = metrics.get("exposed_fraction");
        return [
          {
            label: labelOf(side),
            value,
            range: [metrics.get("step_ms_min") ?? value, metrics.get("step_ms_max") ?? value] as const,
            text: timeText(value),
            peer,
            waiting: share === undefined ? ("not recorded" as const) : share * value,
          },
        ];
      });
      return { title: settingText(setting), bars };
    }),
  });
}

/** "lion-cub 1-bit with-overlap" → "Lion Cub, 1 bit, overlapped". */
function labelOf(side: string): string {
  const words: readonly (readonly [RegExp, string])[] = [
    [/^terse_torch/, "our hook in PyTorch DDP,"],
    [/^pytorch ddp/, "PyTorch DDP,"],
    [/^pytorch/, "PyTorch,"],
    [/^lion-cub/, "Lion Cub,"],
    [/^lion powersgd/, "Lion, our PowerSGD"],
    [/^lion/, "Lion,"],
    [/^dion/, "Dion,"],
    [/^one-bit-lamb/, "1-bit LAMB"],
    [/^one-bit-adam/, "1-bit Adam"],
    [/ 1-bit/, " 1 bit"],
    [/ without-overlap/, ""],
    [/ with-overlap/, ", overlapped"],
    [/ powersgd/, " PowerSGD"],
    [/ 2 MB/, ", 2 MB"],
  ];
  return words.reduce((text, [from, to]) => text.replace(from, to), side);
}

export function trainReport(measurements: readonly Measurement[], { machine, when }: Provenance): string {
  const values = byCase(measuredOf(measurements));
  const number = (value: number | undefined, digits: number) => (value === undefined ? "–" : value.toFixed(digits));
  const tableOf = (setting: string) => {
    const rows = sides.flatMap((side) => {
      const metrics = values.get(`${side} ${setting}`);
      if (!metrics) return [];
      const percent = (value: number | undefined) => (value === undefined ? "–" : `${(100 * value).toFixed(0)} %`);
      const bytes = metrics.get("link_bytes") ?? metrics.get("sent_bytes");
      return [
        [
          side,
          number(metrics.get("step_ms"), 0),
          `${number(metrics.get("step_ms_min"), 0)}–${number(metrics.get("step_ms_max"), 0)}`,
          percent(metrics.get("exposed_fraction")),
          percent(metrics.get("exposed_fraction_least")),
          bytes === undefined ? "–" : (bytes / 1e6).toFixed(2),
          number(metrics.get("loss"), 3),
        ],
      ];
    });
    const ratio = (overlap: string, metric: string) =>
      number(values.get(`lion-cub 1-bit ${overlap} ${setting}`)?.get(metric), 2);
    const step = (side: string) => values.get(`${side} with-overlap ${setting}`)?.get("step_ms") ?? Number.NaN;
    const steps = number([...values].find(([name]) => name.endsWith(` ${setting}`))?.[1].get("steps"), 0);
    return `### ${settingText(setting)}: ${steps} steps

${table(["", "step, ms", "least–most", "waiting, share of the step", "on the rank that waits least", "MB a rank and step", "loss"], rows)}

${values.has(`lion fp32 with-overlap ${setting}`) ? oneBit() : (overFp16() ?? `As fast as PyTorch's DDP with its PowerSGD hook, of the same rank where ours has one: ${overPowersgd()}.`)}
`;
    function overFp16() {
      const ratio = values.get(`${hooks[0]!.name} ${setting}`)?.get("step_over_fp16_hook");
      return (
        ratio &&
        `A step with [our hook](../../packages/codecs/torch/README.md) is **${ratio.toFixed(2)} ×** as fast as with PyTorch's fp16 hook.`
      );
    }
    function oneBit() {
      return `Without overlap Lion Cub is **${ratio("without-overlap", "speedup_over_lion_f32")} ×** as fast as 32-bit Lion. With overlap it is **${ratio("with-overlap", "speedup_over_lion_f32")} ×** as fast as that,
${number(step("lion fp32") / step("lion-cub 1-bit"), 2)} × as fast as 32-bit Lion with overlap, and **${ratio("with-overlap", "speedup_over_powersgd")} ×** as fast as PyTorch's DDP with its PowerSGD hook.`;
    }
    function overPowersgd() {
      const ratios = sides.flatMap((side) => {
        const value = values.get(`${side} ${setting}`)?.get("speedup_over_powersgd");
        const rank = powersgdOf(side).replace(/.* rank/, "rank");
        return value === undefined ? [] : [`${side} **${value.toFixed(2)} ×** (${rank})`];
      });
      return ratios.join(", ");
    }
  };
  return `# Training on slow links, end to end

\`./terse bench train --record\` on ${machine}. The small GPT (4.18 M parameters, batch 4 × 128 bytes a rank) on one thread a rank. Each
rank is in its own network namespace, and the kernel limits its link in both directions. All sides have the same initial weights and the
same batches, and run alternately. A step takes as long as on its slowest rank; medians are over the steps after the warm-up.

- *Waiting* is the time for which a rank waits for messages after backward, here on the rank that waits most. The rank that waits least
  waits for the network alone, the others also for that rank's backward. PyTorch's waiting begins with its last gradient and includes its
  hook. Where it was not recorded the table has –, and the picture is hatched.
- *MB a rank and step*: all bytes that left over a rank's link, with packet headers.
- *Loss* is the training loss at the last measured step, the mean over the ranks, in nats per byte; it begins at about ln 256 = 5.5. It
  shows that every side trains. So few steps do not compare the methods, and each setting ends after another number of steps.

![Time of a step for each side.](train.svg)

${settingsOf(values, sides).map(tableOf).join("\n")}
${projectionText(measurements.filter(isProjected))}All lines: [train.jsonl](train.jsonl). Recorded: ${when}.
`;
}

/** The models of the papers, a table for each. */
function projectionText(measurements: readonly Measurement[]): string {
  if (measurements.length === 0) return "";
  const values = byCase(measurements);
  const named = [...values].map(([name, metrics]) => [name.slice(0, -projectedSuffix.length), metrics] as const);
  const onLinks = named.flatMap(([name, metrics]) => {
    const [, side, ranks, rate] = /^(.*) ×(\d+) (\w+)$/.exec(name) ?? [];
    return side === undefined ? [] : [{ side, ranks: Number(ranks), rate: rate!, metrics }];
  });
  const text = (seconds: number) => `${Number((seconds / 1000).toPrecision(3))} s`;
  const rows = named.flatMap(([side, alone]) => {
    const row = alone.get("row_ms");
    if (row === undefined) return [];
    const own = onLinks.filter((each) => each.side === side);
    return [...new Set(own.map(({ ranks }) => ranks))].map((ranks) => {
      const cells = Object.keys(links).map((rate) => {
        const metrics = own.find((each) => each.ranks === ranks && each.rate === rate)!.metrics;
        const [dense, step, over, messages] = ["dense_step_ms", "step_ms", "speedup_over_dense", "messages_over_dense"];
        return `${text(metrics.get(dense!)!)} → ${text(metrics.get(step!)!)}, **${metrics.get(over!)!.toFixed(1)} ×**, ${metrics.get(messages!)!.toFixed(0)} ×`;
      });
      return [side, String(ranks), text(row), text(alone.get("update_ms")!), ...cells];
    });
  });
  const heads = Object.keys(links).map((rate) => rate.replace(/(m|g)bit/, (_, of) => ` ${of.toUpperCase()}bit/s`));
  return `### At the papers' sizes, projected

\`--settings projection\`: recipes of apps/train/recipes at the papers' sizes and batches, which this machine does not train. **Measured on it**, with
one thread: forward and backward of one row, the optimizer's step without other ranks (Dion's has all matrices, which the ranks would share), the
codecs. **Said**: the link, and 50 µs of latency. **Predicted**: a step's messages, and how much of them backward hides, by the formulas of
[cost-model.md](cost-model.md). Each cell: a step of AdamW with gradients in 32 bits → a step of the method, how many times as fast, and how many times as fast its
messages alone are, which is the limit on processors that compute in no time. 1-bit LAMB is after its warm-up.

${table(["model, method", "ranks", "a row", "update", ...heads], rows)}

`;
}
