/** Where the time of a step goes (the Lion Cub paper's Figure 10): one bar a run, and step by step for one run. */
import { Chart } from "../chart.ts";
import { colour } from "../colours.ts";
import { element, svg, swatch } from "../element.ts";
import { quantity } from "../quantities.ts";
import type { RunData } from "../run-data.ts";
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
  #view: View | undefined;

  show(view: View): void {
    this.#view = view;
    const rows = view.runs.flatMap((run) => {
      const times = timesOf(run);
      return times ? [{ name: run.name, means: times.values.map(mean) }] : [];
    });
    this.card.hidden = rows.length === 0;
    if (rows.length === 0) return;
    const longest = Math.max(...rows.map(({ means }) => sum(means)));
    const cell = (seconds: number, of: number) => `${quantity(seconds, "s")} · ${Math.round((100 * seconds) / of)} %`;
    const head = [
      element("td"),
      ...rows.map(({ name }) => element("th", { scope: "col" }, rows.length > 1 ? name : "a step")),
    ];
    const body = [...parts, undefined].map((part, i) =>
      element(
        "tr",
        {},
        part
          ? element("th", { scope: "row" }, swatch(colour(part.colour)), part.label)
          : element("th", { scope: "row" }, "the whole step"),
        ...rows.map(({ means }) => element("td", {}, part ? cell(means[i]!, sum(means)) : quantity(sum(means), "s"))),
      ),
    );
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
      element(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parts of a step: table" },
        element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)),
      ),
    );
  }

  redraw(): void {
    if (this.#view) this.show(this.#view);
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

export class PartsByStep implements Panel {
  readonly #chart: Chart;

  constructor(read: (text: string) => void) {
    const about = "Parts of the step on top of each other, so the upper edge is the whole step.";
    this.#chart = new Chart({ title: "Parts of a step, over the run", unit: "s", about, stacked: true }, read);
  }

  get card(): HTMLElement {
    return this.#chart.card;
  }

  show({ runs, chosen, by }: View): void {
    const run = runs[chosen]!;
    const times = timesOf(run);
    const x = times?.steps.map((steps) => run.at(steps, by)) ?? [];
    this.#chart.show(times ? parts.map(({ label, colour }, i) => ({ label, colour, x, y: times.values[i]! })) : [], by);
  }

  redraw(): void {
    this.#chart.redraw();
  }
}
