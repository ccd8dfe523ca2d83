/** Throws where an option is no time that one can wait for. */
export function checkSeconds(options: Readonly<Record<string, number>>): void {
  for (const [name, seconds] of Object.entries(options))
    if (!(seconds > 0)) throw new RangeError(`${name} must be more than 0, and is ${seconds}`);
}

/** Of a timer. Node takes one that is longer than 24.8 days for a millisecond. */
export const milliseconds = (seconds: number): number => Math.min(seconds * 1000, 2 ** 31 - 1);
