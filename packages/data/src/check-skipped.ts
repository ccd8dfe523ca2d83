import { DataError } from "./data-error.ts";
import type { Dataset } from "./dataset.ts";

/** Throws `DataError` if more samples could not be read than are allowed. `skipped` names them, and the reasons. */
export function checkSkipped(
  {
    source,
    unit,
    trainingUnits,
    validationUnits,
    mostSkipped = 0,
  }: Pick<Dataset, "source" | "unit" | "trainingUnits" | "validationUnits" | "mostSkipped">,
  skipped: readonly string[],
): void {
  if (skipped.length <= mostSkipped) return;
  const most = Math.floor(mostSkipped);
  throw new DataError(
    `${source}: ${skipped.length} of ${trainingUnits + validationUnits} ${unit}s cannot be decoded, and data.maxCorrupt allows ${most === 0 ? "none" : most}; the last is ${skipped.at(-1)}. Raise data.maxCorrupt, also to resume a run, or replace them and start a new one.`,
  );
}
