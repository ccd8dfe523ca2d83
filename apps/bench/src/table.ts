import type { Measurement } from "./measurement.ts";
import { valueText } from "./text.ts";

/** A table in Markdown. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

/** A row for each case, and a column for each metric, all of them unless `metrics` names some. */
export function tableOfCases(
  lines: readonly Measurement[],
  titleOf: (metric: string) => string,
  {
    metrics = [...new Set(lines.map(({ metric }) => metric))],
    text = ({ value, unit }: Measurement) => valueText(value, unit),
  }: { metrics?: readonly string[]; text?: (line: Measurement) => string } = {},
): string {
  const rows = [...Map.groupBy(lines, (line) => line.case)].map(([name, of]) => {
    const found = metrics.map((metric) => of.find((line) => line.metric === metric));
    return [name, ...found.map((line) => (line ? text(line) : "–"))];
  });
  return table(["", ...metrics.map(titleOf)], rows);
}
