import type uPlot from "uplot";
import { element } from "./element.ts";
import { quantity, type Unit } from "./quantities.ts";
import type { By } from "./run-data.ts";
import type { Series } from "./series.ts";
import { unitsOfX } from "./units-of-x.ts";

const tableRows = 200;

/** The values of series at `x`: at most `tableRows` rows at even distances, the last one among them. */
export function valuesTable(series: readonly Series[], x: uPlot.AlignedData[0], by: By, unit: Unit): HTMLElement {
  const every = Math.ceil(x.length / tableRows);
  const rows = [...x.keys()].filter((i) => (x.length - 1 - i) % every === 0);
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, by),
    ...series.map(({ label }) => element("th", { scope: "col" }, label)),
  );
  const body = rows.map((i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, quantity(x[i]!, unitsOfX[by])),
      ...series.map(({ x: own, y }) => {
        const at = own.indexOf(x[i]!);
        return element("td", {}, at < 0 ? "" : quantity(y[at]!, unit));
      }),
    ),
  );
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}
