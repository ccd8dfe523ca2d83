/** How each run is doing: its state, how far it is, its last values. */
import { colour } from "../colours.ts";
import { element } from "../element.ts";
import { quantity } from "../quantities.ts";
import type { RunData } from "../run-data.ts";
import type { Panel, View } from "./panel.ts";

export class RunCards implements Panel {
  readonly card: HTMLElement;
  #shown: string[] = [];

  constructor(place: HTMLElement) {
    this.card = place;
  }

  show({ runs }: View): void {
    runs.forEach((run, i) => {
      const card = runCard(run, i);
      if (card.outerHTML === this.#shown[i]) return;
      this.#shown[i] = card.outerHTML;
      card.style.setProperty("--of-run", colour(i));
      const old = this.card.children[i];
      if (old) old.replaceWith(card);
      else this.card.append(card);
    });
  }

  forget(): void {
    this.#shown = [];
  }
}

export function stateOf(run: RunData): { name: "waiting" | "running" | "ended" | "stopped" | "failed"; text: string } {
  const { state, steps, stepsToTake } = run;
  if (state === undefined) return { name: "waiting", text: "waiting" };
  if (state.running) return { name: "running", text: "running" };
  if (stepsToTake === undefined) return { name: "ended", text: "over" };
  if (steps >= stepsToTake) return { name: "ended", text: "ended" };
  const after = `after ${steps.toLocaleString("en-US")} ${steps === 1 ? "step" : "steps"}`;
  return run.stopped === undefined
    ? { name: "failed", text: `failed ${after}` }
    : { name: "stopped", text: `stopped ${after} by ${run.stopped}` };
}

function runCard(run: RunData, i: number): HTMLElement {
  const { steps, stepsToTake, state, problems, unreadable } = run;
  const { name, text } = stateOf(run);
  const age = state?.age === undefined ? undefined : state.age + (performance.now() - state.heard) / 1000;
  const stepSeconds = run.lastOf("step_seconds");
  const exposed = run.lastOf("exposed_fraction");
  const left =
    stepSeconds !== undefined && stepsToTake !== undefined && state?.running
      ? stepSeconds * (stepsToTake - steps)
      : undefined;
  const facts: [string, string | undefined][] = [
    [
      "steps",
      `${steps.toLocaleString("en-US")}${stepsToTake === undefined ? "" : ` of ${stepsToTake.toLocaleString("en-US")}`}`,
    ],
    [state?.running ? "last line" : "ended", age === undefined ? undefined : `${ageText(age)} ago`],
    ["left", left === undefined ? undefined : quantity(left, "s")],
    ["trained", quantity(run.at(steps, "seconds"), "s")],
    ["loss", lastText(run, "train/loss")],
    ["validation", lastText(run, "val/loss")],
    ["best", bestText(run)],
    ["step", stepSeconds === undefined ? undefined : quantity(stepSeconds, "s")],
    ["waiting", exposed === undefined ? undefined : quantity(exposed, "share")],
    ["sent", quantity(run.at(steps, "bytes"), "B")],
    ["link", linkText(run.last.get("emulated_link"))],
    ["votes", textOf(run.last.get("exchange/vote"))],
  ];
  const notes = [
    ...problems,
    ...(unreadable > 0
      ? [
          `metrics.jsonl: ${unreadable} ${unreadable === 1 ? "line" : "lines"} could not be read, and ${unreadable === 1 ? "is" : "are"} left out`,
        ]
      : []),
    ...(state?.cut && !state.running ? ["metrics.jsonl: the last line is cut short, and is left out"] : []),
    ...(state && steps === 0 && !state.running && run.columns.size === 0
      ? ["metrics.jsonl has no line of training"]
      : []),
  ];
  return element(
    "article",
    { class: "card run", "aria-labelledby": `run-${i}` },
    element("h2", { id: `run-${i}` }, run.name),
    element("span", { class: `state ${name}` }, text),
    stepsToTake === undefined
      ? undefined
      : element("progress", {
          max: String(stepsToTake),
          value: String(Math.min(steps, stepsToTake)),
          "aria-label": `steps of ${run.name}`,
        }),
    element(
      "dl",
      { class: "facts" },
      ...facts.flatMap(([term, value]) =>
        value === undefined ? [] : [element("div", {}, element("dt", {}, term), element("dd", {}, value))],
      ),
    ),
    ...notes.map((note) => element("p", { class: "problem" }, note)),
  );
}

const lastText = (run: RunData, key: string) => run.lastOf(key)?.toFixed(4);

/** The lowest validation loss: what the run itself has found, or else the lowest of its lines. */
function bestText({ columns }: RunData): string | undefined {
  const found = columns.get("best/loss");
  const { steps, values } = found ?? columns.get("val/loss") ?? { steps: [], values: [] };
  const least = found ? values.length - 1 : values.reduce((at, value, i) => (value < values[at]! ? i : at), 0);
  if (values.length < (found ? 1 : 2)) return undefined;
  return `${values[least]!.toFixed(4)} after ${steps[least]!.toLocaleString("en-US")} steps`;
}

const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);
const linkText = (value: unknown) => (typeof value === "string" ? `emulated, ${value}` : undefined);

function ageText(seconds: number): string {
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`;
}
