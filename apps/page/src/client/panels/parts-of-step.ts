/** Where the time of a step goes (the Lion Cub paper's Figure 10): one bar a run, and step by step for one run. */
import { colour } from "../colours.ts";
import { element, svg, swatch } from "../element.ts";
import { quantity } from "../quantities.ts";
import type { RunData } from "../run-data.ts";
import { table, tablePlace } from "../table.ts";
import { ChartPanel } from "./chart-panel.ts";
import type { Panel, View } from "./panel.ts";

/** The parts that follow one another on a rank's thread; `rest` is what is left of step_seconds. */
const parts = [
  { key: "time/data", label: "data", colour: 4 },
  { key: "time/forward", label: "forward", colour: 2 },
  { key: "time/backward", label: "backward", colour: 0 },
  { key: "time/exposed", label: "waiting for messages", colour: 1 },
  { key: "rest", label: "update and rest", colour: 7 },
] as const;

/** Each part at each training line. */
function timesOf(run: RunData): { steps: readonly number[]; values: readonly number[][] } | undefined {
  const whole = run.columns.get("step_seconds");
  const own = parts.slice(0, -1).map(({ key }) => run.columns.get(key));
  if (whole === undefined || own.every((column) => column === undefined)) return undefined;
  // The lines of a run that was begun without these measurements are fewer: the last ones.
  const lines = Math.min(whole.values.length, ...own.flatMap((column) => column?.values.length ?? []));
  const values = own.map((column) => column?.values.slice(-lines) ?? new Array<number>(lines).fill(0));
  const rest = whole.values
    .slice(-lines)
    .map((seconds, i) => Math.max(0, seconds - values.reduce((sum, part) => sum + part[i]!, 0)));
  return { steps: whole.steps.slice(-lines), values: [...values, rest] };
}

export class PartsOfStep implements Panel {
  readonly card = element("section", { class: "card", "aria-label": "Parts of a step" });

  show({ runs }: View): void {
    const rows = runs.flatMap((run) => {
      const times = timesOf(run);
      return times ? [{ name: run.name, means: times.values.map(mean) }] : [];
    });
    this.card.hidden = rows.length === 0;
    if (rows.length === 0) return;
    const longest = Math.max(...rows.map(({ means }) => sum(means)));
    const cell = (seconds: number, of: number) => `${quantity(seconds, "s")} · ${Math.round((100 * seconds) / of)} %`;
    const head = [element("td"), ...rows.map(({ name }) => (rows.length > 1 ? name : "a step"))];
    const ofParts = parts.map((part, i) => [
      [swatch(colour(part.colour)), part.label],
      ...rows.map(({ means }) => cell(means[i]!, sum(means))),
    ]);
    const whole = ["the whole step", ...rows.map(({ means }) => quantity(sum(means), "s"))];
    this.card.replaceChildren(
      element("h2", {}, "Parts of a step"),
      element(
        "p",
        { class: "about" },
        "Means over the run on rank 0. Messages that leave while backward runs cost nothing here.",
      ),
      element(
        "div",
        { class: "parts" },
        ...rows.map(({ name, means }) =>
          element("div", {}, rows.length > 1 ? name : undefined, bar(name, means, longest)),
        ),
      ),
      tablePlace("Parts of a step", table(head, [...ofParts, whole])),
    );
  }
}

function bar(name: string, means: readonly number[], longest: number): Element {
  const text = parts.map(({ label }, i) => `${label} ${quantity(means[i]!, "s")}`).join(", ");
  let left = 0;
  const rects = means.map((seconds, i) => {
    const width = (100 * seconds) / longest;
    const rect = svg("rect", {
      x: `${left}%`,
      width: `${Math.max(0, width - 0.2)}%`,
      height: "100%",
      fill: colour(parts[i]!.colour),
    });
    left += width;
    return rect;
  });
  return svg("svg", { class: "bar", role: "img", "aria-label": `${name}: ${text}` }, ...rects);
}

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
const mean = (values: readonly number[]) => sum(values) / values.length;

export function partsByStep(read: (text: string) => void): ChartPanel {
  const about = "Parts of the step on top of each other, so the upper edge is the whole step.";
  const options = { title: "Parts of a step, over the run", unit: "s", about, stacked: true } as const;
  return new ChartPanel(options, read, ({ runs, chosen, by }) => {
    const run = runs[chosen]!;
    const times = timesOf(run);
    if (times === undefined) return [];
    const x = times.steps.map((steps) => run.at(steps, by));
    return parts.map(({ label, colour }, i) => ({ label, colour, x, y: times.values[i]! }));
  });
}
