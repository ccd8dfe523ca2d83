import { constants } from "node:os";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs `work`, whose `signal` a signal to this process aborts: it then leaves nothing half done. The process ends as by
 * that signal. A second one ends it at once.
 */
export async function untilSignal<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let by: (typeof signals)[number] | undefined;
  const end = (signal: (typeof signals)[number]) => {
    if (by !== undefined) process.exit(128 + constants.signals[signal]);
    by = signal;
    controller.abort();
  };
  for (const signal of signals) process.on(signal, end);
  try {
    return await work(controller.signal);
  } catch (error) {
    if (by === undefined || !controller.signal.aborted) throw error;
    process.stderr.write(`${by}: nothing was written\n`);
    return process.exit(128 + constants.signals[by]);
  } finally {
    for (const signal of signals) process.off(signal, end);
  }
}
