import type uPlot from "uplot";
import { quantity, type Unit } from "./quantities.ts";
import type { By } from "./run-data.ts";
import type { Series } from "./series.ts";
import { table } from "./table.ts";
import { unitsOfX } from "./units-of-x.ts";

const tableRows = 200;

/** The values of series at `x`: at most `tableRows` rows at even distances, the last one among them. */
export function valuesTable(series: readonly Series[], x: uPlot.AlignedData[0], by: By, unit: Unit): HTMLElement {
  const every = Math.ceil(x.length / tableRows);
  const rows = [...x.keys()].filter((i) => (x.length - 1 - i) % every === 0);
  return table(
    [by, ...series.map(({ label }) => label)],
    rows.map((i) => [
      quantity(x[i]!, unitsOfX[by]),
      ...series.map(({ x: own, y }) => {
        const at = own.indexOf(x[i]!);
        return at < 0 ? "" : quantity(y[at]!, unit);
      }),
    ]),
  );
}
