import type { Sign } from "@terse/native-codecs";

/** What an exact zero becomes on a wire that has only plus and minus. `hold`: the lane is masked out, on every rank alike. */
export type ZeroPolicy = Sign | "alternate" | "hold";

/** What a tied vote becomes. `zero`: nothing, told by a second bit plane (majorityOrZero). */
export type TiePolicy = "zero" | Sign | "alternate";

/**
 * The sign that a policy gives at one step: `alternate` is plus on even steps and minus on odd ones, so that lanes that always
 * tie go nowhere in the long run (Lion Cub, §5.1). A function of the step alone: every rank gives the same answer.
 */
export function signAt(policy: Sign | "alternate", step: number): Sign {
  if (policy === "plus" || policy === "minus") return policy;
  if (policy !== "alternate")
    throw new TypeError(`signAt: policy is ${String(policy)}, and must be "plus", "minus" or "alternate".`);
  if (!Number.isSafeInteger(step)) throw new RangeError(`signAt: step is ${String(step)}, and must be a whole number.`);
  return step % 2 === 0 ? "plus" : "minus";
}
