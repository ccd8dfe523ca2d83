/** What is known of a run's time. */
export interface RunTime {
  readonly seconds: number; // in this process
  readonly steps: { readonly first: number; readonly done: number; readonly of: number } | undefined;
}

/**
 * Seconds until the last run ends: runs that have not begun take as long as those that have ended or are under way.
 * Undefined where no run has taken a step.
 */
export function timeLeft(
  { ended, running, waiting }: { ended: readonly number[]; running: readonly RunTime[]; waiting: number },
  jobs: number,
): number | undefined {
  const known = running.flatMap(({ seconds, steps }) => {
    const taken = steps === undefined ? 0 : steps.done - steps.first;
    return taken > 0
      ? [{ left: (seconds / taken) * (steps!.of - steps!.done), whole: (seconds / taken) * steps!.of }]
      : [];
  });
  const whole = ended.length > 0 ? ended : known.map((run) => run.whole);
  if (whole.length === 0) return undefined;
  const mean = whole.reduce((sum, seconds) => sum + seconds, 0) / whole.length;
  const left = known.reduce((sum, run) => sum + run.left, 0) + mean * (running.length - known.length + waiting);
  return Math.max(left / Math.min(jobs, running.length + waiting || 1), ...known.map((run) => run.left));
}
