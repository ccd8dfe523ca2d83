/**
 * Writes docs/results/models.md: steps, data and files of models as measured, and a table for each task on real data.
 */

import { type Spread, spreadOf } from "@terse/pictures/spread";
import { bytesText } from "@terse/train/format";
import { readRecipe } from "@terse/train/recipe";
import { spreadText } from "../convergence/curves.ts";
import { byCase, type Values } from "../measurement.ts";
import type { Provenance, RecordedLine } from "../recording.ts";
import { table, tableOfCases } from "../table.ts";
import { ranks, runs, settingOf } from "./runs.ts";
import { methods, type Task, tasks } from "./tasks.ts";

const reference: keyof typeof methods = "lion";

export function modelsReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const measured = lines.filter(({ setting }) => !(setting in runs));
  const trained = byCase(lines.filter(({ setting }) => setting in runs));
  // Cases that measure the same share a table.
  const cases = [...Map.groupBy(measured, (line) => line.case).values()];
  const metricsOf = (of: readonly RecordedLine[]) => [...new Set(of.map(({ metric }) => metric))].join();
  const tables = [...Map.groupBy(cases, metricsOf).values()].map((alike) =>
    tableOfCases(alike.flat(), (metric) => metric.replaceAll("_", " ")),
  );
  const sections = Object.entries(tasks).flatMap(([name, task]) => sectionOf(name, task, trained) ?? []);
  const changes = Object.entries(methods).map(
    ([method, words]) => `- ${method}: ${words.map((word) => `\`${word}\``).join(", ")}`,
  );
  return `# Models: steps, data, files, and real runs

Written by \`./terse bench models --record\`. ${machine}.

## Steps, data and files

*over pytorch* and *over compile* are the time of a step in PyTorch, eager and by \`torch.compile\`, ÷ ours: forward, backward and AdamW (PyTorch's
is the fused one) on the same shapes, batch and threads, medians of rounds in which the sides take turns; 1 and more is faster. PyTorch's models are
torchvision's, timm's, transformers' and a twin of our GPT. *lora over peft* is the time of a step with PEFT's LoRA ÷ that of ours, on the same
base, rows and targets. Of BERT, both sides compute the scores of all words only where a word was masked;
transformers' own loss computes them at every position. What \`torch.compile\` is ahead by in the GPT and DeiT: it joins operators that ours runs one after the other, the residual
additions with the norms, GELU with the bias, the parts of the loss, and their backwards. To be ahead of it takes fused kernels with backwards of
their own for these, as RMSNorm and SwiGLU have. *data fraction* is the share of a step that training waits for its batch.

${tables.join("\n\n") || "Not recorded yet."}

## Real runs

Each method trains with ${ranks} processes of one thread. The first seed searches its learning rate in steps of two, by the loss on held-out
data, until the best is neither the least nor the largest that was tried; the table says where it still is. The second seed takes it. A seed
has its own weights and order of the data. The mean over the seeds, and in parentheses the least and the most.
These runs are short, so they show what a method reaches in few steps, not where it ends.

${sections.join("\n\n") || "Not recorded yet."}

What each method changes in the recipe:

${changes.join("\n")}

All lines, those of the searches too: [models.jsonl](models.jsonl). Recorded: ${when}.
`;
}

/** The section of a task; undefined where no method has been recorded. */
function sectionOf(name: string, task: Task, values: Values): string | undefined {
  const recorded = Object.keys(methods).filter((method) => values.has(settingOf(name, method)));
  if (recorded.length === 0) return undefined;
  const { steps, data } = readRecipe(task.recipe, ["data.path=data"]);
  const sentBy = (method: string) => values.get(settingOf(name, method))?.get("sent_per_step");
  const dense = sentBy(reference);
  const accurate = recorded.some((method) => over(values, name, method, "validation_accuracy"));
  const rows = recorded.map((method) => {
    const { seeds, spread: loss } = over(values, name, method, "validation_loss")!;
    const accuracy = over(values, name, method, "validation_accuracy");
    const sent = sentBy(method)!;
    return [
      method,
      rateText(values, name, method),
      spreadText(loss, seeds),
      ...(accurate ? [accuracy ? percent(accuracy) : "–"] : []),
      bytesText(sent),
      dense === undefined ? "–" : (sent / dense).toPrecision(2),
    ];
  });
  const head = [
    "method",
    "η",
    "validation loss, nats",
    ...(accurate ? ["accuracy"] : []),
    "a rank sends per step",
    `÷ ${reference}`,
  ];
  return `### ${task.title}

\`TERSE_DATA=FOLDER ./terse bench models --settings ${settingOf(name, recorded[0]!)} --record\`: \`apps/bench/src/models/recipes/${name}.yaml\`, ${steps} steps, batch
${data.batchSize} on each of ${ranks} processes.

${table(head, rows)}`;
}

/** The learning rate, and whether no better one may have been tried: it lies at an end of the search. */
function rateText(values: Values, task: string, method: string): string {
  const rate = Number(over(values, task, method, "lr")!.spread.mean.toPrecision(3));
  const search = values.get(`${settingOf(task, method)}, search`) ?? new Map<string, number>();
  const tried = [...search.keys()].map((metric) => Number(metric.replace("loss_at_lr_", "")));
  if (tried.length > 1 && rate >= Math.max(...tried)) return `${rate}, the largest tried`;
  if (tried.length > 1 && rate <= Math.min(...tried)) return `${rate}, the least tried`;
  return String(rate);
}

interface Seeds {
  readonly seeds: number;
  readonly spread: Spread;
}

function over(values: Values, task: string, method: string, metric: string): Seeds | undefined {
  const start = `${settingOf(task, method)}, seed `;
  const found = [...values].flatMap(([name, metrics]) => (name.startsWith(start) ? (metrics.get(metric) ?? []) : []));
  return found.length > 0 ? { seeds: found.length, spread: spreadOf(found) } : undefined;
}

function percent({ seeds, spread: { mean, least, most } }: Seeds): string {
  const text = (share: number) => `${(100 * share).toFixed(1)} %`;
  return seeds === 1 ? text(mean) : `${text(mean)} (${text(least)} to ${text(most)})`;
}
