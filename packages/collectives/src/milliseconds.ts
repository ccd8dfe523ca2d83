import { show } from "@terse/options";

/** Checks options in seconds, by their names. Throws RangeError where one is not a number above 0. */
export function checkSeconds(options: Readonly<Record<string, number>>): void {
  for (const [name, seconds] of Object.entries(options))
    if (!(typeof seconds === "number" && seconds > 0))
      throw new RangeError(`${name} must be more than 0, and is ${show(seconds)}`);
}

/** The delay of a timer. Node treats one beyond 24.8 days as 1 ms, so it is limited to that. */
export const milliseconds = (seconds: number): number => Math.min(seconds * 1000, 2 ** 31 - 1);
