/** The charts: which keys of metrics.jsonl each shows, of all runs or of the one whose details are shown. */
import type { ChartOptions } from "../chart.ts";
import type { By, RunData } from "../run-data.ts";
import type { Series } from "../series.ts";
import { ChartPanel } from "./chart-panel.ts";

interface Line {
  readonly key: string;
  readonly label: string;
  readonly points?: boolean;
  readonly faint?: boolean;
  readonly beside?: string; // shown only where this key is
  readonly colour?: number; // in the details of one run
}

interface Definition extends ChartOptions {
  readonly lines: readonly Line[];
}

const line = (key: string, label: string): Line => ({ key, label });
const rare = (key: string, label: string): Line => ({ key, label, points: true });

/** One colour a run. */
export const ofAllRuns: readonly Definition[] = [
  {
    title: "Loss",
    unit: "",
    about:
      "Of training, the mean over the ranks; with points: on held-out data. Between rounds of local steps the first is that of each rank's own parameters, the second that of the ones they share.",
    lines: [
      { key: "train/loss", label: "training", faint: true },
      { key: "val/loss", label: "validation", points: true },
      { key: "val/loss_of_average", label: "validation, average", points: true },
    ],
  },
  {
    title: "Step",
    unit: "s",
    about: "Time of a step, without evaluations and saves.",
    lines: [line("step_seconds", "step")],
  },
  {
    title: "Waiting for messages",
    unit: "share",
    about: "Share of the time after backward in which nothing else was done: what the network costs.",
    lines: [line("exposed_fraction", "waiting")],
  },
  { title: "Bytes", unit: "B", about: "Sent by rank 0 in a step, with headers.", lines: [line("sent_bytes", "sent")] },
  {
    title: "Bytes of a round",
    unit: "B",
    about: "Sent by rank 0 in a round of local steps, whose share in each step is among the bytes above.",
    lines: [line("local/round_bytes", "sent")],
  },
  {
    title: "Waiting for a round",
    unit: "s",
    about: "Where the round is used: what its delay has not hidden.",
    lines: [line("local/wait_seconds", "waiting")],
  },
  {
    title: "Drift of a round",
    unit: "",
    about: "Distance of a rank's own parameters from the shared ones when the round left, the mean over the ranks.",
    lines: [line("local/drift", "drift")],
  },
  {
    title: "Skew",
    unit: "s",
    about: "Own work of the slowest rank in a step, less that of the fastest.",
    lines: [line("skew_seconds", "skew")],
  },
  {
    title: "Momentum drift",
    unit: "",
    about: "Standard deviation of the momenta between ranks, divided by the root mean square of their mean.",
    lines: [rare("momentum/drift", "drift")],
  },
  {
    title: "Ties",
    unit: "share",
    about: "Elements with as many votes each way, and as many as there would be if votes had nothing in common.",
    lines: [
      rare("votes/ties", "ties"),
      { key: "votes/chance_ties", label: "chance", faint: true, beside: "votes/ties" },
    ],
  },
  {
    title: "Agreement of votes",
    unit: "share",
    about: "Pairs of ranks that vote the same way: 100 % is unanimous, about 50 % is chance.",
    lines: [rare("votes/agreement", "votes")],
  },
  {
    title: "Agreement of momenta",
    unit: "share",
    about: "Pairs of ranks whose momenta have the same sign.",
    lines: [rare("momentum/agreement", "momenta")],
  },
  { title: "Gradient norm", unit: "", about: "Before clipping.", lines: [line("grad_norm", "norm")] },
  { title: "Learning rate", unit: "", lines: [line("lr", "rate")] },
];

/** One colour a line. */
export const ofOneRun: readonly Definition[] = [
  {
    title: "Vote and standard Lion",
    unit: "share",
    about: "Elements whose vote with one bit has the sign of standard Lion's update, the opposite one, or none.",
    lines: [
      { ...rare("update/match", "match"), colour: 2 },
      { ...rare("update/flip", "flip"), colour: 1 },
      { ...rare("update/ties", "ties"), colour: 7 },
      { key: "votes/chance_ties", label: "chance of ties", faint: true, beside: "update/ties", colour: 5 },
    ],
  },
  {
    title: "Messages and update",
    unit: "s",
    about: "Time a step of what runs while backward does, or while the step waits.",
    lines: [
      line("time/encode", "encode"),
      line("time/wire", "wire"),
      line("time/decode", "decode"),
      line("time/update", "update"),
    ],
  },
];

export const chartOfRuns = (definition: Definition, read: (text: string) => void): ChartPanel =>
  new ChartPanel(definition, read, ({ runs, by }) => {
    const measured = definition.lines.filter(({ key, beside = key }) =>
      runs.some(({ columns }) => columns.has(key) && columns.has(beside)),
    );
    const several = measured.length > 1;
    return runs.flatMap((run, i) =>
      measured.flatMap((each, at) => {
        // The lines of a single run have a colour each.
        const label = runs.length === 1 ? each.label : several ? `${run.name}, ${each.label}` : run.name;
        return seriesOf(run, { ...each, label }, runs.length === 1 ? at : i, by);
      }),
    );
  });

export const chartOfRun = (definition: Definition, read: (text: string) => void): ChartPanel =>
  new ChartPanel(definition, read, ({ runs, chosen, by }) =>
    definition.lines.flatMap((each, i) => seriesOf(runs[chosen]!, each, each.colour ?? i + 1, by)),
  );

function seriesOf(run: RunData, { key, beside, ...style }: Line, colour: number, by: By): Series[] {
  const column = run.columns.get(key);
  if (column === undefined || (beside !== undefined && !run.columns.has(beside))) return [];
  return [{ ...style, colour, x: column.steps.map((steps) => run.at(steps, by)), y: column.values }];
}
