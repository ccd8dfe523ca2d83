/** Writes docs/results/local.md: losses of local steps, beside those of messages in every step. */
import { bytesText } from "@terse/train/format";
import { workers } from "../convergence/convergence.ts";
import { byCase, type Values } from "../measurement.ts";
import { recordedValues } from "../papers/recorded.ts";
import type { Provenance, RecordedLine } from "../recording.ts";
import { methods } from "./methods.ts";

/** Methods of `bench convergence` that stand beside those with local steps. */
const beside = ["adamw", "muon", "adamw-terngrad", "lion-cub-beta-0.95", "signum"];

export function localReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const values = byCase(lines);
  const synchronous = recordedValues("convergence");
  const dense = synchronous.get("adamw")?.get("sent_per_step");
  const row = (of: Values, name: string, cells: readonly string[]) => {
    const losses = lossesOf(of, name);
    if (losses.length === 0) return [];
    const sent = of.get(name)?.get("sent_per_step");
    const part = sent === undefined || dense === undefined ? undefined : sent / dense;
    const bits = part === undefined ? "–" : (48 * part).toPrecision(2); // a worker of four sends 1.5 · 32 bits densely
    return [`| ${[name, ...cells, lossText(losses), sent === undefined ? "–" : bytesText(sent), bits].join(" | ")} |`];
  };
  const every = beside.flatMap((name) => row(synchronous, name, ["1", "–"]));
  const local = Object.entries(methods).flatMap(([name, { syncEvery }]) => {
    const chosen = values.get(`${name}, seed 1`);
    const outer = chosen && `${chosen.get("outer_lr")}, ${chosen.get("momentum")}`;
    return row(values, name, [String(syncEvery), outer ?? "–"]);
  });
  return `# Local steps: losses

Written by \`./terse bench local --record\`. ${machine}. The small GPT of [convergence.md](convergence.md) with ${workers} workers and
400 steps: every worker trains by itself, and all share what they have found every H steps, by SGD with the outer rate
and Nesterov momentum of the third column. The rate inside (from the search of convergence.md on) and the outer step
are searched in 12 runs with the first seed; three seeds. The loss is that of the shared copy. Methods that send in
every step are those of convergence.md.

| method | H | outer rate, momentum | validation loss, nats per byte | a worker sends per step | bits a parameter and step |
| --- | --- | --- | --- | --- | --- |
${[...every, ...local].join("\n")}

The wire is what the end of a name says: f32 means; or 8, 4, 2 bits or one an element, both ways, with error feedback.
4 bits are those of the codec l1; "of-means" are those of bin-means.
Not measured yet: more than four workers, runs of 2,000 steps, intervals of 20 and 50 steps, seconds on links.

All lines, those of the searches too: [local.jsonl](local.jsonl). Recorded: ${when}.
`;
}

function lossesOf(values: Values, name: string): number[] {
  return [...values].flatMap(([key, metrics]) =>
    key.startsWith(`${name}, seed `) ? [metrics.get("validation_loss") ?? Number.NaN] : [],
  );
}

function lossText(losses: readonly number[]): string {
  const mean = losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
  return `${mean.toFixed(3)} (${Math.min(...losses).toFixed(3)} to ${Math.max(...losses).toFixed(3)})`;
}
