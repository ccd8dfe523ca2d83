/**
 * For tests: waits until it holds, for some seconds, and then throws an error that says what is missing. They are
 * counted in timers, so a process that gets no processor for a while waits longer.
 */
export async function until(holds: () => boolean, missing: () => string): Promise<void> {
  for (let timers = 0; !holds(); timers++) {
    if (timers === 4000) throw new Error(missing());
    await new Promise((next) => setTimeout(next, 1));
  }
}
