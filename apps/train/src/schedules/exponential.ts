/**
 * Times `decay` after every `every` steps, as 1-bit LAMB's experiments do. Li et al. 2021, §4, "Training parameters",
 * https://arxiv.org/abs/2104.06069: for BERT with 128 tokens lr grows from 1e-3 to 12e-3 in 450 steps, and is then
 * multiplied by 0.9 after every 250.
 *
 *   warm-up     start^(1 − t/n): lr grows by the same factor in every step; without `start` in equal steps
 *   after it    decay^⌊t / every⌋
 */
import { positive, positiveInteger, v } from "@terse/options";
import type { Schedule } from "./schedule.ts";

const options = v.object({
  decay: v.optional(v.pipe(positive, v.maxValue(1)), 0.9),
  every: v.optional(positiveInteger, 250), // steps
  start: v.optional(v.pipe(positive, v.maxValue(1))), // of lr, at the first step of the warm-up
});

export const exponential: Schedule<v.InferOutput<typeof options>> = {
  options,
  share: (t, _, { decay, every }) => decay ** Math.floor(t / every),
  warmupShare: (t, n, { start }) => (start === undefined ? (t + 1) / n : start ** (1 - t / n)),
};
