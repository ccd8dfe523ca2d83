/** The report and the picture of a recorded run of `bench exchange`. */
import { byCase, type Measurement, settingsOf, type Values } from "../measurement.ts";
import { type Panel, panels, timeText } from "../panels.ts";
import type { Provenance } from "../recording.ts";
import { settingText } from "../setting-text.ts";
import { table } from "../table.ts";

const methods = ["1-bit", "pytorch compressed", "f32", "pytorch f32", "gloo f32"];
const names: Record<string, string> = {
  "1-bit": "1 bit, a vote",
  f32: "f32, our ring",
  "gloo f32": "f32, Gloo's ring",
  "pytorch f32": "f32, PyTorch on Gloo",
  "pytorch compressed": "1 bit, DeepSpeed's method in torch",
};

export function exchangePicture(measurements: readonly Measurement[]): string | undefined {
  const values = byCase(measurements);
  const shown = settingsOf(values, methods).filter((setting) => setting.startsWith("16 Mi "));
  return panels({
    title: "Time to make 16 Mi floats (64 MiB in f32) the same on all ranks: shorter is better",
    own: "ours",
    waiting: "1 bit: waiting for the wire",
    peer: "peers",
    panels: shown.map((setting) => panel(setting, values)),
  });
}

function panel(setting: string, values: Values): Panel {
  const bars = methods.flatMap((method) => {
    // Dense exchanges on one machine are named by their bytes: 64 MiB are 16 Mi floats.
    const metrics = values.get(`${method} ${setting}`) ?? values.get(`${method} ${setting.replace("16 Mi", "64 MiB")}`);
    const value = metrics?.get("time");
    return value === undefined
      ? []
      : [
          {
            label: names[method]!,
            value,
            text: timeText(value),
            peer: method !== "1-bit" && method !== "f32",
            waiting: metrics?.get("wire_alone"),
          },
        ];
  });
  return { title: settingText(setting), bars };
}

export function exchangeReport(measurements: readonly Measurement[], { machine, when }: Provenance): string {
  const values = byCase(measurements);
  const of = (method: string, setting: string, metric: string) => values.get(`${method} ${setting}`)?.get(metric);
  const number = (value: number | undefined, digits = 2) => (value === undefined ? "–" : value.toFixed(digits));
  const slow = settingsOf(values, methods).filter((setting) => /bit/.test(setting));
  const fast = settingsOf(values, methods).filter((setting) => setting.includes("MiB"));
  const phased = settingsOf(values, methods).filter((setting) => of("1-bit", setting, "encode") !== undefined);
  const phases =
    phased.length === 0
      ? ""
      : `The phases of a 1-bit exchange in ms, on its slowest rank. Encode, vote and decode are the work of the rank's thread, one after the
other. The wire phase is the time in which a message is on the wire. It overlaps with the others, because chunks are encoded and counted
while other chunks are on the wire, so the phases add up to more than the whole. The last column is the time in which the thread only
waits for the wire.

${table(
  ["", "encode", "wire", "vote", "decode", "whole", "waiting for the wire"],
  phased.map((setting) => {
    const cells = ["encode", "wire", "vote", "decode", "time", "wire_alone"];
    return [setting, ...cells.map((metric) => number(of("1-bit", setting, metric), 1))];
  }),
)}

`;
  const memory = [...values].filter(([, metrics]) => metrics.has("extra_bytes_per_parameter"));
  return `# How long an exchange takes

\`./terse bench exchange --record\` on ${machine}. Each rank is a process${slow.some((each) => !each.includes("emulated")) ? "; on slow links in a network namespace of its own, its link shaped by the kernel in both directions" : ""};
all methods alternate in one run, and each time is the median over the rounds, of the slowest rank. Every element of our results was compared with
the formula: \`wrong\` is 0 in all of ${[...values.values()].filter((metrics) => metrics.has("wrong")).length} cases${[...values.values()].some((metrics) => (metrics.get("wrong") ?? 0) > 0) ? " except those that the lines name" : ""}.

![Times of 16 Mi floats.](exchange.svg)

## On slow links

16 Mi floats (64 MiB in f32). Link use: the bytes of the busiest rank's link, with packet headers, ÷ the bytes that it could have carried.

${table(
  ["", "f32", "1 bit", "f32 ÷ 1 bit", "link use, f32", "link use, 1 bit", "DeepSpeed's method ÷ ours"],
  slow.map((setting) => [
    setting,
    timeText(of("f32", setting, "time")!),
    timeText(of("1-bit", setting, "time")!),
    `**${number(of("1-bit", setting, "speedup_over_f32"), 1)}**`,
    number(of("f32", setting, "link_use")),
    number(of("1-bit", setting, "link_use")),
    number(of("1-bit", setting, "speedup_over_compressed"), 1),
  ]),
)}

${phases}DeepSpeed's method is its compressed all-reduce, written with the same steps in plain torch on PyTorch's Gloo
(\`apps/bench/peers/exchange.py\`). It also computes the errors of error feedback, which our vote does not have.

## Dense, limited only by the processor

All-reduce of f32 over TCP on one machine's loopback, milliseconds and ratios (above 1: ours is faster).

${table(
  ["", "ours", "Gloo's own ring", "PyTorch on Gloo", "`over_gloo`", "`over_pytorch`"],
  fast.map((setting) => [
    setting,
    number(of("f32", setting, "time")),
    number(of("gloo f32", setting, "time")),
    number(of("pytorch f32", setting, "time")),
    `**${number(of("f32", setting, "over_gloo"))}**`,
    number(of("f32", setting, "over_pytorch")),
  ]),
)}

## Memory

Besides the vector itself a 1-bit exchange takes ${memory.map(([name, metrics]) => `${number(metrics.get("extra_bytes_per_parameter"), 3)} bytes a parameter (${name.replace("1-bit ", "")})`).join(" and ")}
at its peak, by the kernel's count of the process's pages.

All lines, with algbw, busbw and bytes on the wire: [exchange.jsonl](exchange.jsonl). Recorded: ${when}.
`;
}
