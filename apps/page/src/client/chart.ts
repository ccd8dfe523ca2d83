/** A chart with its heading, its legend, which tells the values under the cursor, its keys, and its values as a table. */
import "./english.ts";
import uPlot from "uplot";
import { colour, dash, named } from "./colours.ts";
import { element, swatch } from "./element.ts";
import { quantity, type Unit } from "./quantities.ts";
import { type By, lowerBound } from "./run-data.ts";

export interface Series {
  readonly label: string;
  readonly colour: number;
  readonly x: readonly number[]; // ascending
  readonly y: readonly number[];
  /** Points joined by a line, for what is measured rarely. */
  readonly points?: boolean;
  readonly faint?: boolean;
}

export interface ChartOptions {
  readonly title: string;
  readonly unit: Unit;
  /** One sentence on what is seen. */
  readonly about?: string;
  /** Areas on top of each other; all series have the same x. */
  readonly stacked?: boolean;
}

const unitsOfX: Record<By, Unit> = { steps: "steps", seconds: "s", bytes: "B" };
const timeMarks = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];
const byteMarks = Array.from({ length: 14 }, (_, power) => [1, 2, 5].map((first) => first * 10 ** power)).flat();
const stepMarks = byteMarks;
const height = 220;
const tableRows = 200;

export class Chart {
  readonly card: HTMLElement;
  readonly #options: ChartOptions;
  readonly #plot = element("div", { class: "plot", tabindex: "0", role: "img" });
  readonly #legend = element("ul", { class: "legend" });
  readonly #table = element("div", { class: "scroll", tabindex: "0", role: "region" });
  readonly #details: HTMLDetailsElement;
  readonly #read: (text: string) => void;
  readonly #hiddenLabels = new Set<string>();
  #uplot: uPlot | undefined;
  #made = ""; // what the plot was made for
  #series: readonly Series[] = [];
  #by: By = "steps";
  #data: uPlot.AlignedData = [[]];
  #marked = -1; // index under the cursor

  constructor(options: ChartOptions, read: (text: string) => void) {
    this.#options = options;
    this.#read = read;
    this.#details = element("details", {}, element("summary", {}, "Table"), this.#table);
    this.#details.addEventListener("toggle", () => this.#fillTable());
    const { title, about } = options;
    this.#table.setAttribute("aria-label", `${title}: table`);
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
    const made = JSON.stringify([by, series.map(({ label, colour, points }) => [label, colour, points])]);
    if (this.#uplot && made === this.#made) this.#uplot.setData(this.#data, false);
    else this.#make();
    this.#made = made;
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

  /** Draws anew, in the colours of light or dark mode. */
  redraw(): void {
    if (!this.#uplot) return;
    this.#make();
    this.#showAll();
    this.#legend.replaceChildren();
    this.#fillLegend();
  }

  #make(): void {
    this.#uplot?.destroy();
    const { unit, stacked = false } = this.#options;
    const [text, grid] = [named("quiet"), named("grid")];
    const axis = {
      stroke: text,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1, size: 5 },
      font: "12px system-ui, sans-serif",
    };
    const marks = (unitOf: Unit) => (_: uPlot, splits: number[]) => {
      const step = splits.length > 1 ? splits[1]! - splits[0]! : undefined;
      return splits.map((split) => quantity(split, unitOf, step));
    };
    const series = this.#series.map(({ colour: i, points = false, faint = false, label }, at): uPlot.Series => {
      const stroke = colour(i);
      return {
        label,
        show: !this.#hiddenLabels.has(label),
        stroke,
        width: stacked ? 1 : faint ? 1.25 : 2,
        alpha: faint ? 0.7 : 1,
        dash: [...dash(i)],
        spanGaps: true,
        ...(stacked && { fill: stroke }),
        points: { show: points || this.#series[at]!.x.length < 2, size: 6, fill: stroke },
      };
    });
    this.#uplot = new uPlot(
      {
        width: Math.max(200, this.#plot.clientWidth),
        height,
        series: [{}, ...series],
        scales: {
          x: { time: false, range: (_, min, max) => (max > min ? [min, max] : [min - 0.5, max + 0.5]) },
          y: { range: (_, min, max) => rangeOf(min, max, stacked) },
        },
        axes: [
          {
            ...axis,
            values: marks(unitsOfX[this.#by]),
            size: 32,
            space: 60,
            incrs: { steps: stepMarks, seconds: [0.001, 0.01, 0.1, ...timeMarks], bytes: byteMarks }[this.#by],
          },
          {
            ...axis,
            values: marks(unit),
            size: (_, values) => 14 + 7 * Math.max(3, ...(values ?? []).map((value) => value.length)),
            space: 38,
          },
        ],
        bands: stacked ? this.#series.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] })) : [],
        legend: { show: false },
        cursor: {
          sync: { key: `by ${this.#by}`, setSeries: false },
          drag: { x: true, y: false },
          points: { size: 7 },
          y: false,
        },
        hooks: { setCursor: [({ cursor }) => this.#mark(cursor.idx ?? -1)] },
      },
      this.#data,
      this.#plot,
    );
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
    this.#made = "";
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

  /** At most `tableRows` rows at even distances, the last one among them. */
  #fillTable(): void {
    if (!this.#details.open) return;
    const { unit } = this.#options;
    const x = this.#data[0];
    const every = Math.ceil(x.length / tableRows);
    const rows = [...x.keys()].filter((i) => (x.length - 1 - i) % every === 0);
    const head = element(
      "tr",
      {},
      element("th", { scope: "col" }, this.#by),
      ...this.#series.map(({ label }) => element("th", { scope: "col" }, label)),
    );
    const body = rows.map((i) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, quantity(x[i]!, unitsOfX[this.#by])),
        ...this.#series.map(({ x: own, y }) => {
          const at = own.indexOf(x[i]!);
          return element("td", {}, at < 0 ? "" : quantity(y[at]!, unit));
        }),
      ),
    );
    this.#table.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
  }
}

/** From 0 where that costs no more than a third of the height. */
function rangeOf(min: number | null, max: number | null, stacked: boolean): [number, number] {
  if (min === null || max === null) return [0, 1];
  const from = stacked || (min >= 0 && min < max / 3) ? 0 : min;
  const room = (max - from || Math.abs(max) || 1) * 0.06;
  return [from === 0 ? 0 : from - room, max + room];
}

/** All series on one axis, as uPlot takes them. Where `isHidden` is given their values are added up, but for hidden ones. */
function joined(series: readonly Series[], isHidden?: (i: number) => boolean): uPlot.AlignedData {
  if (isHidden) {
    const x = series[0]!.x;
    const sum = new Float64Array(x.length);
    const sums = series.map(({ y }, i) => {
      if (!isHidden(i)) for (const [at, value] of y.entries()) sum[at]! += value;
      return [...sum];
    });
    return [[...x], ...sums];
  }
  return uPlot.join(series.map(({ x, y }) => [[...x], [...y]] as uPlot.AlignedData));
}
