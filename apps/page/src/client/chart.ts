/**
 * A chart with its heading, its legend, which tells the values under the cursor, its keys, and its values as a table.
 */
import "./english.ts";
import uPlot from "uplot";
import { colour, dash } from "./colours.ts";
import { element, swatch } from "./element.ts";
import { height, joined, plotOptions } from "./plot-options.ts";
import { quantity, type Unit } from "./quantities.ts";
import { type By, lowerBound } from "./run-data.ts";
import type { Series } from "./series.ts";
import { tablePlace } from "./table.ts";
import { unitsOfX } from "./units-of-x.ts";
import { valuesTable } from "./values-table.ts";

export interface ChartOptions {
  readonly title: string;
  readonly unit: Unit;
  /** One sentence on what is seen. */
  readonly about?: string;
  /** Areas on top of each other; all series have the same x. */
  readonly stacked?: boolean;
}

export class Chart {
  readonly card: HTMLElement;
  readonly #options: ChartOptions;
  readonly #plot = element("div", { class: "plot", tabindex: "0", role: "img" });
  readonly #legend = element("ul", { class: "legend" });
  readonly #table: HTMLElement;
  readonly #details: HTMLDetailsElement;
  readonly #read: (text: string) => void;
  readonly #hiddenLabels = new Set<string>();
  #uplot: uPlot | undefined;
  #plotted = ""; // what the plot was made for
  #series: readonly Series[] = [];
  #by: By = "steps";
  #data: uPlot.AlignedData = [[]];
  #marked = -1; // index under the cursor

  constructor(options: ChartOptions, read: (text: string) => void) {
    this.#options = options;
    this.#read = read;
    const { title, about } = options;
    this.#table = tablePlace(title);
    this.#details = element("details", {}, element("summary", {}, "Table"), this.#table);
    this.#details.addEventListener("toggle", () => this.#fillTable());
    this.card = element(
      "section",
      { class: "card", "aria-label": title },
      element("h2", {}, title),
      about === undefined ? undefined : element("p", { class: "about" }, about),
      this.#legend,
      this.#plot,
      this.#details,
    );
    this.#plot.addEventListener("keydown", (event) => this.#key(event));
    this.#plot.addEventListener("blur", () => this.#uplot?.setCursor({ left: -10, top: -10 }));
    new ResizeObserver(() => this.#resize()).observe(this.#plot);
  }

  show(series: readonly Series[], by: By): void {
    this.card.hidden = series.length === 0;
    if (series.length === 0) return;
    this.#series = series;
    const zoomed = this.#zoom();
    const keeps = by === this.#by;
    this.#by = by;
    this.#data = joined(series, this.#options.stacked ? (i) => this.#hiddenLabels.has(series[i]!.label) : undefined);
    const plotted = JSON.stringify([by, series.map(({ label, colour, points }) => [label, colour, points])]);
    if (this.#uplot && plotted === this.#plotted) this.#uplot.setData(this.#data, false);
    else this.#make();
    this.#plotted = plotted;
    if (keeps && zoomed) this.#uplot!.setScale("x", zoomed);
    else this.#showAll();
    this.#fillLegend();
    this.#fillTable();
    const last = series.map(({ label, y }) => `${label} ${quantity(y.at(-1)!, this.#options.unit)}`).join(", ");
    this.#plot.setAttribute(
      "aria-label",
      `${this.#options.title} by ${by}, a line chart. Last values: ${last}. Arrow keys read values.`,
    );
  }

  /** Is drawn anew at the next `show`, in the colours of light or dark mode. */
  forget(): void {
    this.#plotted = "";
    this.#legend.replaceChildren();
  }

  #make(): void {
    this.#uplot?.destroy();
    const { unit, stacked = false } = this.#options;
    const width = Math.max(200, this.#plot.clientWidth);
    const isHidden = (label: string) => this.#hiddenLabels.has(label);
    const options = plotOptions(this.#series, { by: this.#by, unit, stacked, width, isHidden });
    const hooks = { setCursor: [({ cursor }: uPlot) => this.#mark(cursor.idx ?? -1)] };
    this.#uplot = new uPlot({ ...options, hooks }, this.#data, this.#plot);
  }

  #resize(): void {
    const width = this.#plot.clientWidth;
    if (this.#uplot && width > 0 && width !== this.#uplot.width) this.#uplot.setSize({ width, height });
  }

  #showAll(): void {
    const x = this.#data[0];
    if (x.length > 0) this.#uplot!.setScale("x", { min: x[0]!, max: x.at(-1)! });
  }

  /** The part of the run that is shown; undefined where it is the whole. */
  #zoom(): { min: number; max: number } | undefined {
    const x = this.#data[0];
    const { min, max } = this.#uplot?.scales["x"] ?? {};
    if (min == null || max == null || x.length === 0) return undefined;
    return min > x[0]! || max < x.at(-1)! ? { min, max } : undefined;
  }

  #mark(index: number): void {
    if (index === this.#marked) return;
    this.#marked = index;
    this.#fillLegend();
  }

  /** The value of a series at an index of the plot; where it has none there, the last one before. */
  #valueAt(series: number, index: number): number | undefined {
    const { x, y } = this.#series[series]!;
    if (index < 0) return y.at(-1);
    const here = this.#data[0][index]!;
    const at = lowerBound(x, here);
    return y[x[at] === here ? at : at - 1];
  }

  #fillLegend(): void {
    const { unit, stacked = false } = this.#options;
    const texts = this.#series.map(({ label }, at) => {
      const value = this.#valueAt(at, this.#marked);
      return `${label} ${value === undefined ? "" : quantity(value, unit)}`;
    });
    if (this.#legend.childElementCount !== texts.length)
      this.#legend.replaceChildren(
        ...this.#series.map(({ label, colour: i }) => {
          const button = element(
            "button",
            { type: "button", "aria-pressed": "true", title: "show or hide" },
            swatch(colour(i), dash(i), !stacked),
            element("span"),
          );
          button.addEventListener("click", () => this.#toggle(label));
          return element("li", {}, button);
        }),
      );
    [...this.#legend.querySelectorAll("button")].forEach((button, at) => {
      button.lastElementChild!.textContent = texts[at]!;
      button.setAttribute("aria-pressed", String(!this.#hiddenLabels.has(this.#series[at]!.label)));
    });
  }

  #toggle(label: string): void {
    if (!this.#hiddenLabels.delete(label)) this.#hiddenLabels.add(label);
    this.#plotted = "";
    this.show(this.#series, this.#by);
  }

  #key(event: KeyboardEvent): void {
    const plot = this.#uplot!;
    const x = this.#data[0];
    const { min = 0, max = 0 } = plot.scales["x"]!;
    const shown = x.map((_, i) => i).filter((i) => x[i]! >= min! && x[i]! <= max!);
    const [first = 0, last = 0] = [shown[0], shown.at(-1)];
    const jump = event.shiftKey ? 10 : 1;
    const here = this.#marked < 0 ? last : this.#marked;
    const to = {
      ArrowLeft: Math.max(first, here - jump),
      ArrowRight: Math.min(last, here + jump),
      Home: first,
      End: last,
    }[event.key];
    const factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key];
    if (to !== undefined) {
      plot.setCursor({ left: plot.valToPos(x[to]!, "x"), top: plot.bbox.height / devicePixelRatio / 2 });
      this.#mark(to);
      const { unit } = this.#options;
      const values = this.#series.map(
        ({ label }, at) => `${label} ${quantity(this.#valueAt(at, to) ?? Number.NaN, unit)}`,
      );
      this.#read(
        `${quantity(x[to]!, unitsOfX[this.#by])}${this.#by === "steps" ? " steps" : ""}: ${values.join(", ")}`,
      );
    } else if (factor !== undefined) {
      const centre = x[here]!;
      const [from, until] = [centre - (centre - min!) * factor, centre + (max! - centre) * factor];
      plot.setScale("x", { min: Math.max(x[0]!, from), max: Math.min(x.at(-1)!, until) });
    } else if (event.key === "Escape") this.#showAll();
    else return;
    event.preventDefault();
  }

  #fillTable(): void {
    if (!this.#details.open) return;
    this.#table.replaceChildren(valuesTable(this.#series, this.#data[0], this.#by, this.#options.unit));
  }
}
