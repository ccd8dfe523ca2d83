/** How long a run takes on a slow link: the measured time of each kind of step, for each of its steps. */
import { median } from "../measurement.ts";
import type { Trained } from "./training.ts";

type Steps = Trained["steps"];

/**
 * Milliseconds of a step by its bytes: medians. The first step is left out, and the first of each kind that has three
 * and more.
 */
export function timesByBytes(steps: Steps): Map<number, number> {
  const kinds = Map.groupBy(steps.slice(1), ({ bytes }) => bytes);
  return new Map(
    [...kinds].map(([bytes, of]) => {
      const counted = of.length > 2 ? of.slice(1) : of;
      return [bytes, median(counted.map(({ milliseconds }) => milliseconds))];
    }),
  );
}

/**
 * The same of steps with a round every so many: means over whole intervals, so that those of an interval add up to its
 * time. Medians would not: behind a round a rank shares the cores with ranks that compute, or has them for itself while
 * these wait. The first interval is left out.
 */
export function meansByBytes(steps: Steps, interval: number): Map<number, number> {
  const whole = steps.slice(interval, steps.length - (steps.length % interval));
  const kinds = [...Map.groupBy(whole, ({ bytes }) => bytes)];
  return new Map(
    kinds.map(([bytes, of]) => [bytes, of.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / of.length]),
  );
}

/**
 * The lesser time of each kind of step in several runs: other work can only slow one down, and once in a while a link
 * loses time, too.
 */
export function leastTimes(runs: readonly ReadonlyMap<number, number>[]): Map<number, number> {
  const least = new Map<number, number>();
  for (const [bytes, milliseconds] of runs.flatMap((run) => [...run]))
    least.set(bytes, Math.min(milliseconds, least.get(bytes) ?? milliseconds));
  return least;
}

/** How many steps of each kind. */
export function countKinds(bytes: readonly number[]): Map<number, number> {
  return new Map([...Map.groupBy(bytes, (of) => of)].map(([of, steps]) => [of, steps.length]));
}

/**
 * Seconds of so many steps of each kind. One whose bytes were not timed takes as long as the kind with the nearest
 * bytes.
 */
export function secondsOf(counts: ReadonlyMap<number, number>, times: ReadonlyMap<number, number>): number {
  const kinds = [...times];
  let seconds = 0;
  for (const [bytes, count] of counts) {
    const distance = (kind: number) => Math.abs(Math.log((kind + 1) / (bytes + 1)));
    const [, milliseconds] = kinds.reduce((best, kind) => (distance(kind[0]) < distance(best[0]) ? kind : best));
    seconds += (count * milliseconds) / 1000;
  }
  return seconds;
}
