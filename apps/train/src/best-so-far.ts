/**
 * What validation has shown so far: the lowest loss, and for how many evaluations none was lower. It decides which save
 * is the best, and when a run ends early. All ranks have the same losses, so they decide the same, without a message.
 */
import { DataError, type Dataset } from "@terse/data";
import type { Recipe } from "./recipe-schema.ts";

/** As a save has it. */
export interface Validated {
  readonly at: number; // steps before the last evaluation that counts
  readonly loss?: number; // of that evaluation, where it is finite
  readonly best?: { readonly step: number; readonly loss: number };
  readonly lowest?: number; // the loss that others must be lower than, by stop.minDelta
  readonly without: number; // evaluations since then
}

/** Why a run ends before its last step. */
export interface ReasonToStop {
  readonly key: string; // of the recipe
  readonly why: string;
  readonly goesOn: string; // with which flag it goes on
}

export class BestSoFar {
  readonly #minDelta: number;
  #seen: Validated;

  /** Goes on from what the save has, of a run that is resumed. */
  constructor({ stop }: Pick<Recipe, "stop">, saved: Validated = { at: 0, without: 0 }) {
    this.#minDelta = stop?.minDelta ?? 0;
    this.#seen = saved;
  }

  /** undefined before the first evaluation that counts. */
  get validated(): Validated | undefined {
    return this.#seen.at > 0 ? this.#seen : undefined;
  }

  /**
   * The loss after `step` steps. Returns whether it is the lowest so far. One before the first step does not count, nor
   * one that was seen before, and a loss that is not a finite number is no lowest one.
   */
  saw(step: number, loss: number): boolean {
    const { at, best, lowest = Number.POSITIVE_INFINITY, without } = this.#seen;
    if (step <= at) return false;
    const isBest = Number.isFinite(loss) && loss < (best?.loss ?? Number.POSITIVE_INFINITY);
    const counts = Number.isFinite(loss) && loss < lowest - this.#minDelta;
    this.#seen = {
      at: step,
      ...(Number.isFinite(loss) && { loss }),
      ...(isBest ? { best: { step, loss } } : best && { best }),
      ...(counts ? { lowest: loss } : Number.isFinite(lowest) && { lowest }),
      without: counts ? 0 : without + 1,
    };
    return isBest;
  }

  /** Why the run ends now, by its section `stop`; undefined where it goes on. */
  reasonToStop(stop: Recipe["stop"]): ReasonToStop | undefined {
    const { best, lowest, without } = this.#seen;
    if (stop?.target !== undefined && best !== undefined && best.loss <= stop.target)
      return {
        key: "stop.target",
        why: `the validation loss was ${best.loss.toFixed(4)} after ${best.step} steps, and stop.target is ${stop.target}`,
        goesOn: stop.patience === undefined ? "--stop=null" : "--stop.target=null",
      };
    if (stop?.patience === undefined || without < stop.patience) return undefined;
    const below = lowest === undefined ? "a number" : `below ${lowest.toFixed(4)}`;
    const by = stop.minDelta > 0 ? ` by more than ${stop.minDelta}` : "";
    return {
      key: "stop.patience",
      why: `in ${without} evaluations the validation loss was not ${below}${by}, and stop.patience is ${stop.patience}`,
      goesOn: `--stop.patience=${without + stop.patience}`,
    };
  }
}

const keyOf = ({ save, stop }: Pick<Recipe, "save" | "stop">) => (stop ? "stop" : save.best ? "save.best" : undefined);

/** Throws `DataError` where there is no held-out data to look at. */
export function checkHeldOut(recipe: Pick<Recipe, "save" | "stop">, { validationUnits }: Dataset): void {
  const key = keyOf(recipe);
  if (key !== undefined && validationUnits === 0)
    throw new DataError(
      `${key} looks at the loss of held-out data, and nothing is held out; hold some out (data.validationFraction, or a folder val/), or leave ${key} out`,
    );
}

/** What of `save.best` and `stop` does not fit the rest of a recipe, a line each. */
export function problemsOfStop(recipe: Recipe): string[] {
  const { stop, evaluate, local } = recipe;
  const key = keyOf(recipe);
  if (key === undefined) return [];
  const problems: string[] = [];
  if (stop && stop.patience === undefined && stop.target === undefined)
    problems.push("stop: says nothing: give stop.patience, stop.target or both, or leave it out");
  if (evaluate.every === 0)
    problems.push(
      `${key}: looks at evaluations, and evaluate.every is 0, none before the end; set evaluate.every, to 100 for example`,
    );
  if (local && evaluate.every % local.syncEvery !== 0) {
    const every = local.syncEvery * Math.max(1, Math.round(evaluate.every / local.syncEvery));
    problems.push(
      `${key}: with local the ranks share all their work every ${local.syncEvery} steps (local.syncEvery), and evaluate.every is ${evaluate.every}; set evaluate.every to ${every}`,
    );
  }
  return problems;
}
