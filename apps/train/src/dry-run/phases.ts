/** The bytes of every step of a run, by phases: a warm-up and a compression, or steps that take turns. */

/** Steps that send equally many bytes. */
export interface Phase {
  /** The first step, from 0, and the last one. */
  readonly from: number;
  readonly to: number;
  /** How many they are: all from `from` to `to`, unless other steps come between. */
  readonly steps: number;
  /** Payload that a rank sends in each of them. */
  readonly bytes: number;
}

const samples = 200;
const most = 8; // phases without steps between them

/**
 * The phases in the order of their first steps. `bytesOf` is called for each step; in long runs of few phases only for
 * some. `periods`: numbers of steps after which something is sent again, which may be too rare to be found otherwise.
 */
export function phasesOf(steps: number, bytesOf: (step: number) => number, periods: readonly number[] = []): Phase[] {
  const sampled = runsOf(sampleOf(steps, periods), bytesOf);
  if (sampled.length <= most) {
    const ends = sampled.slice(1).map((next, i) => lastBefore(sampled[i]!.last, next.first, bytesOf, next.bytes));
    return sampled.map(({ bytes }, i) => {
      const [from, to] = [(ends[i - 1] ?? -1) + 1, ends[i] ?? steps - 1];
      return { from, to, steps: to - from + 1, bytes };
    });
  }
  const runs = runsOf([...Array(steps).keys()], bytesOf);
  return [...Map.groupBy(runs, ({ bytes }) => bytes)].map(([bytes, all]) => ({
    from: all[0]!.first,
    to: all.at(-1)!.last,
    steps: all.reduce((sum, { first, last }) => sum + last - first + 1, 0),
    bytes,
  }));
}

interface Run {
  first: number;
  last: number;
  bytes: number;
}

function runsOf(steps: readonly number[], bytesOf: (step: number) => number): Run[] {
  const runs: Run[] = [];
  for (const step of steps) {
    const bytes = bytesOf(step);
    const before = runs.at(-1);
    if (before?.bytes === bytes) before.last = step;
    else runs.push({ first: step, last: step, bytes });
  }
  return runs;
}

/**
 * Some steps from `from` up to `steps`: the first and the last one, some between them at uneven distances, so that no
 * short period stays hidden, and the next ends of longer periods.
 */
export function sampleOf(steps: number, periods: readonly number[], from = 0): number[] {
  if (steps <= samples) return [...Array(steps).keys()].slice(from);
  const distance = (steps - 1) / samples;
  const between = Array.from({ length: samples }, (_, i) => Math.floor((i + ((i * 0.618034) % 1)) * distance));
  const ends = periods.flatMap((period) =>
    Array.from({ length: most }, (_, i) => (Math.floor(from / period) + i + 1) * period),
  );
  const all = [from, ...between, ...ends.flatMap((end) => [end - 1, end]), steps - 1];
  return [...new Set(all)].filter((step) => step >= from && step < steps).sort((a, b) => a - b);
}

/** The last step before the bytes become those of step `b`. */
function lastBefore(a: number, b: number, bytesOf: (step: number) => number, bytes: number): number {
  while (b - a > 1) {
    const middle = Math.floor((a + b) / 2);
    if (bytesOf(middle) === bytes) b = middle;
    else a = middle;
  }
  return a;
}
