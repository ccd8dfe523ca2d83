/** Runs of neighbouring items. `joins`: whether an item belongs to the run of the one before it. */
export function runsOf<T>(items: readonly T[], joins: (before: T, item: T) => boolean): T[][] {
  const runs: T[][] = [];
  for (const item of items) {
    const last = runs.at(-1);
    if (last && joins(last.at(-1)!, item)) last.push(item);
    else runs.push([item]);
  }
  return runs;
}
