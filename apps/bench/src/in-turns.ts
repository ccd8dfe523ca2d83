import { median } from "./measurement.ts";

/**
 * The times of sides that take turns, so that changes of the machine affect all of them: one of each side for each
 * round. The first round is warm-up.
 */
export async function inTurns<Side extends string>(
  sides: Readonly<Record<Side, () => number | Promise<number>>>,
  rounds = 7,
): Promise<Record<Side, number[]>> {
  const names = Object.keys(sides) as Side[];
  const times = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Side, number[]>;
  for (let round = -1; round < rounds; round++)
    for (const name of names) {
      const time = await sides[name]();
      if (round >= 0) times[name].push(time);
    }
  return times;
}

/** The median over the rounds of one side's time ÷ another's. */
export const medianRatio = (times: readonly number[], others: readonly number[]): number =>
  median(times.map((time, i) => time / others[i]!));
