import { DataError } from "./data-error.ts";
import type { Dataset } from "./dataset.ts";

/** Throws `DataError` where more samples could not be read than may be. `skipped` says which, and why. */
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
