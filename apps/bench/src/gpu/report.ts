/** Writes docs/results/gpu.md: kernels beside a copy and beside PyTorch's, and training beside the CPU's. */
import { byCase, type Measurement, type Values } from "../measurement.ts";
import type { Provenance, RecordedLine } from "../recording.ts";
import { table, tableOfCases } from "../table.ts";
import { valueText } from "../text.ts";

export function gpuReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const of = (setting: string) => lines.filter((line) => line.setting === setting);
  return `# On a GPU

Written by \`./terse bench gpu --record\`. ${machine}.

## Kernels

*÷ copy* is the bytes that the work must read and write at least ÷ its time, ÷ the same of a copy on the device
(\`cudaMemcpyAsync\`, its bytes read and written both counted); 1 is as fast as a copy. *÷ PyTorch's* is our time ÷
PyTorch's for the same work: \`torch.optim\`'s AdamW and SGD (fused), Lion by multi-tensor operations, conversions by
\`copy_\` and \`add_\`, \`topk\` of the absolute values, \`vector_norm\`, \`addmm_\` in f32; less than 1 is faster.
Times are the device's own, medians of 21 calls.

${copies(lines)}

### Codecs

${kernelTable(byCase(of("codecs")))}

### Optimizers

${kernelTable(byCase(of("optimizers")))}

## Training

A small GPT (gpt-small's, on the documents of this repository) by the same recipe on the CPU, on the GPU, and
on the GPU with the engine nccl, alone in its world: losses on held-out text in nats per byte after so many steps, and
the median step. A GPU's operators round in another order, so losses are near each other and not equal.

${tableOf(of("training"), (metric) => metric.replace("loss_at_", "").replace("step_ms", "a step"))}

## Two ranks on one GPU

GPT-2's size in bf16, 8 rows of 1024 tokens on each of two ranks, which share the GPU and send over tcp on this machine:
the median step, and what a rank sends. The ranks compute in turn. So these times say what a method adds to a step on
the GPU, and nothing of a network.

${tableOf(of("two-ranks"), (metric) => ({ step_ms: "a step", sent_per_step: "a rank sends per step" })[metric] ?? metric)}

## GPT-2's size

Tokens a second in bf16 with AdamW, beside PyTorch's model of the same shape, eager and by \`torch.compile\`, with its
fused AdamW. *mfu* is the share of the GPU's peak that the model's own operations take; *over pytorch* and *over
compile* are PyTorch's time ÷ ours, 1 and more is faster.

${tableOf(of("gpt-124m"), (metric) => metric.replaceAll("_", " "))}

All lines: [gpu.jsonl](gpu.jsonl). Recorded: ${when}.
`;
}

/** "A copy of 64 Mi floats: 2900 GB/s before, 2910 GB/s after the kernels of codecs." */
function copies(lines: readonly RecordedLine[]): string {
  const copied = lines.filter((line) => line.case.startsWith("copy, "));
  const bySize = Map.groupBy(copied, (line) => line.case.split(", ").at(-1)!);
  return [...bySize]
    .map(([size, of]) => {
      const speeds = of.map(({ value }) => value);
      return `A copy of ${size}: ${valueText(Math.min(...speeds), "")} to ${valueText(Math.max(...speeds), "GB/s")}.`;
    })
    .join(" ");
}

/** A row for each kernel, and for each size its share of a copy, its time, and its time ÷ PyTorch's. */
function kernelTable(values: Values): string {
  const names = [...values.keys()].filter((name) => !name.startsWith("copy, "));
  if (names.length === 0) return "Not recorded yet.";
  const split = names.map((name) => name.match(/^(.*), (\d+ Mi floats)$/)!.slice(1) as [string, string]);
  const sizes = [...new Set(split.map(([, size]) => size))];
  const columns = sizes.flatMap((size) =>
    [
      ["÷ copy", "over_copy", "ratio"],
      ["time", "milliseconds", "ms"],
      ["÷ PyTorch's", "over_torch", "ratio"],
    ].map(([head, metric, unit]) => ({ size, head: `${size}: ${head}`, metric: metric!, unit: unit! })),
  );
  const rows = [...new Set(split.map(([kernel]) => kernel))].map((kernel) => {
    const cells = columns.map(({ size, metric, unit }) => {
      const value = values.get(`${kernel}, ${size}`)?.get(metric);
      return value === undefined ? "–" : unit === "ratio" ? value.toFixed(2) : valueText(value, unit);
    });
    return [kernel, ...cells];
  });
  return table(["", ...columns.map((column) => column.head)], rows);
}

function tableOf(lines: readonly RecordedLine[], titleOf: (metric: string) => string): string {
  return lines.length === 0 ? "Not recorded yet." : tableOfCases(lines, titleOf, { text });
}

const units: Readonly<Record<string, string>> = { step_ms: "ms", sent_per_step: "B" };

function text({ metric, value }: Measurement): string {
  if (metric.startsWith("loss_at_")) return value.toFixed(4);
  if (metric.startsWith("mfu_")) return valueText(value, "fraction");
  return valueText(value, units[metric] ?? "");
}
