import type { Sign } from "@terse/native-codecs";

/**
 * What an exact zero becomes on a wire that has only plus and minus. `hold` masks zeros, with the same mask on every
 * rank.
 */
export type ZeroPolicy = Sign | "alternate" | "hold";

/** What a tied vote becomes. `zero`: neither plus nor minus, marked in a second bit plane (majorityOrZero). */
export type TiePolicy = "zero" | Sign | "alternate";

/**
 * The sign that a policy gives at one step. `alternate` is plus in even steps and minus in odd ones, so that elements
 * that always tie stay where they are in the long run (Lion Cub, §3.2, which has plus in odd steps). The sign depends
 * on the step alone, so every rank has the same.
 */
export function signAt(policy: Sign | "alternate", step: number): Sign {
  if (policy === "plus" || policy === "minus") return policy;
  if (policy !== "alternate")
    throw new TypeError(`signAt: policy is ${String(policy)}, and must be "plus", "minus" or "alternate".`);
  if (!Number.isSafeInteger(step)) throw new RangeError(`signAt: step is ${String(step)}, and must be a whole number.`);
  return step % 2 === 0 ? "plus" : "minus";
}
