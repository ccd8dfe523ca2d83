import { exitCodeOf, onSignals, type Signal } from "../interruption.ts";

/**
 * Runs `work`, whose `signal` a signal to this process aborts: it then leaves nothing half done. The process ends as by
 * that signal. A second one ends it at once.
 */
export async function untilSignal<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let by: Signal | undefined;
  using _ = onSignals((signal) => {
    if (by !== undefined) process.exit(exitCodeOf(signal));
    by = signal;
    controller.abort();
  });
  try {
    return await work(controller.signal);
  } catch (error) {
    if (by === undefined || !controller.signal.aborted) throw error;
    process.stderr.write(`${by}: nothing was written\n`);
    return process.exit(exitCodeOf(by));
  }
}
