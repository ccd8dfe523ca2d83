import { RoundSchedule } from "@terse/optimizers";
import type { Recipe } from "./recipe-schema.ts";

/** Steps around a save with which a run goes on: the most of any fragment. */
export interface StepsBetweenRounds {
  readonly sinceRound: number; // that a rank has taken since its last round
  readonly toNext: number; // from that round to the next one, with the options with which the run goes on
}

type Rounds = Pick<Recipe, "steps" | "local">;

/** Undefined unless both runs have local steps with the same number of fragments, and rounds that are possible. */
export function stepsBetweenRounds(before: Rounds, after: Rounds, step: number): StepsBetweenRounds | undefined {
  const [past, next] = [scheduleOf(before), scheduleOf(after)];
  const fragments = before.local?.fragments;
  if (!past || !next || fragments === undefined || fragments !== after.local?.fragments) return undefined;
  const lasts = Array.from({ length: fragments }, (_, fragment) => {
    let last = step;
    while (last > 0 && !isRoundOf(past, last, fragment)) last--;
    return last;
  });
  const gaps = lasts.map((last, fragment) => {
    let first = step + 1;
    while (first < after.steps && !isRoundOf(next, first, fragment)) first++;
    return first - last;
  });
  return { sinceRound: step - Math.min(...lasts), toNext: Math.max(...gaps) };
}

const isRoundOf = (schedule: RoundSchedule, step: number, fragment: number) =>
  schedule.isUsed(step) && schedule.fragmentAt(step) === fragment;

function scheduleOf({ local, steps }: Rounds): RoundSchedule | undefined {
  try {
    return local && new RoundSchedule({ ...local, steps });
  } catch (error) {
    if (error instanceof RangeError) return undefined; // the recipe is refused for it
    throw error;
  }
}
