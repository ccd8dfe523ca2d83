import { Chart, type ChartOptions } from "../chart.ts";
import type { Series } from "../series.ts";
import type { Panel, View } from "./panel.ts";

/** A chart of what `seriesOf` finds in the runs. */
export class ChartPanel implements Panel {
  readonly #chart: Chart;
  readonly #seriesOf: (view: View) => Series[];

  constructor(options: ChartOptions, read: (text: string) => void, seriesOf: (view: View) => Series[]) {
    this.#chart = new Chart(options, read);
    this.#seriesOf = seriesOf;
  }

  get card(): HTMLElement {
    return this.#chart.card;
  }

  show(view: View): void {
    this.#chart.show(this.#seriesOf(view), view.by);
  }

  forget(): void {
    this.#chart.forget();
  }
}
