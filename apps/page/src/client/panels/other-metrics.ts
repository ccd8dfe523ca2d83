/** A chart for each key that no other one shows: metrics of validation (val/accuracy …), and items a second. */
import { element } from "../element.ts";
import type { Unit } from "../quantities.ts";
import type { ChartPanel } from "./chart-panel.ts";
import { chartOfRuns } from "./charts.ts";
import type { Panel, View } from "./panel.ts";

export class OtherMetrics implements Panel {
  readonly card = element("div", { class: "others" });
  readonly #charts = new Map<string, ChartPanel>();
  readonly #read: (text: string) => void;

  constructor(read: (text: string) => void) {
    this.#read = read;
  }

  show(view: View): void {
    this.card.hidden = false;
    const keys = new Set(view.runs.flatMap((run) => [...run.columns.keys()].filter((key) => titleOf(key))));
    for (const key of keys) {
      if (this.#charts.has(key)) continue;
      const { title, unit } = titleOf(key)!;
      const isRare = key.startsWith("val/");
      const chart = chartOfRuns(
        { title, unit, lines: [{ key, label: isRare ? "validation" : "all ranks", points: isRare }] },
        this.#read,
      );
      this.#charts.set(key, chart);
      this.card.append(chart.card);
    }
    for (const chart of this.#charts.values()) chart.show(view);
  }

  forget(): void {
    for (const chart of this.#charts.values()) chart.forget();
  }
}

function titleOf(key: string): { title: string; unit: Unit } | undefined {
  const [, metric] = /^val\/(?!loss$)(.+)$/.exec(key) ?? [];
  if (metric !== undefined) return { title: `Validation: ${metric.replaceAll("_", " ")}`, unit: "" };
  const [, items] = /^(\w+)_per_second$/.exec(key) ?? [];
  return items === undefined ? undefined : { title: `Throughput: ${items} a second`, unit: "count" };
}
