/**
 * Times `decay` at each milestone, as ResNets are trained. He et al. 2016, §3.4, https://arxiv.org/abs/1512.03385
 *
 *   warm-up     from `start` in equal steps: start + (1 − start) t/n; without `start` as all others
 *   after it    decay^m, m: the milestones that t has reached
 */
import { positive, positiveInteger, v } from "@terse/options";
import type { Schedule } from "./schedule.ts";

const options = v.object({
  // Steps after the warm-up.
  milestones: v.optional(v.pipe(v.array(positiveInteger), v.description("a list of integers ≥ 1")), []),
  decay: v.optional(v.pipe(positive, v.maxValue(1)), 0.1),
  start: v.optional(v.pipe(positive, v.maxValue(1))), // of lr, at the first step of the warm-up
});

export const multiStep: Schedule<v.InferOutput<typeof options>> = {
  options,
  share: (t, _, { milestones, decay }) => decay ** milestones.filter((milestone) => milestone <= t).length,
  warmupShare: (t, n, { start }) => (start === undefined ? (t + 1) / n : start + ((1 - start) * t) / n),
};
