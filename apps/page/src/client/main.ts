/** The page: it follows the runs, and shows them anew when something has changed. */
import { onTheme } from "./colours.ts";
import { AgreementByLayer } from "./panels/agreement-by-layer.ts";
import { chartOfRun, chartOfRuns, ofAllRuns, ofOneRun } from "./panels/charts.ts";
import { Momenta } from "./panels/momenta.ts";
import { OtherMetrics } from "./panels/other-metrics.ts";
import type { Panel } from "./panels/panel.ts";
import { PartsOfStep, partsByStep } from "./panels/parts-of-step.ts";
import { Ranks } from "./panels/ranks.ts";
import { Recipes } from "./panels/recipes.ts";
import { RunCards, stateOf } from "./panels/run-cards.ts";
import { Sample } from "./panels/sample.ts";
import type { By } from "./run-data.ts";
import { follow } from "./stream.ts";

const byId = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const controls = byId<HTMLFormElement>("controls");
const chosen = byId<HTMLSelectElement>("run");
const read = (text: string) => {
  byId("reading").textContent = text;
};

const [loss, ...others] = ofAllRuns.map((definition) => chartOfRuns(definition, read));
const cards = new RunCards(byId("runs"));
const panels: readonly Panel[] = [
  loss!,
  new PartsOfStep(),
  partsByStep(read),
  ...ofOneRun.map((definition) => chartOfRun(definition, read)),
  new Ranks(),
  new AgreementByLayer(),
  ...others,
  new OtherMetrics(read),
  new Momenta(),
  new Sample(),
  new Recipes(),
];
byId("panels").append(...panels.map(({ card }) => card));
for (const { card } of panels) card.hidden = true;

let isDue = false;
let next = 0; // when the page may be drawn again, by performance.now()
const { runs } = await follow(
  () => {
    if (!isDue) setTimeout(show, Math.max(20, next - performance.now()));
    isDue = true;
  },
  (text) => {
    byId("connection").textContent = text;
  },
);

function view() {
  return { runs, chosen: Math.max(0, chosen.selectedIndex), by: new FormData(controls).get("by") as By };
}

/** Draws twice a second at most, and for a tenth of the time: the browser may run beside the ranks. */
function show(): void {
  const began = performance.now();
  isDue = false;
  if (runs.length === 0) return;
  if (chosen.options.length !== runs.length) {
    chosen.replaceChildren(...runs.map(({ name }) => new Option(name)));
    byId("details").hidden = runs.length === 1;
  }
  controls.hidden = false;
  cards.show(view());
  for (const panel of panels) panel.show(view());
  const [first] = runs;
  const share = first!.stepsToTake === undefined ? "" : ` ${Math.floor((100 * first!.steps) / first!.stepsToTake)} %`;
  document.title = `${stateOf(first!).text}${share} · ${runs.map(({ name }) => name).join(", ")} · terse`;
  next = began + Math.max(500, 10 * (performance.now() - began));
}

controls.addEventListener("change", show);
controls.addEventListener("submit", (event) => event.preventDefault());
onTheme(() => {
  for (const panel of [cards, ...panels]) panel.forget?.();
  show();
});
setInterval(() => {
  if (runs.length > 0 && !document.hidden) cards.show(view()); // the age of the last line
}, 1000);
