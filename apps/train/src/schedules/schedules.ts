/** The learning rate of every step: a warm-up to the highest one, then a schedule, which a recipe chooses by name. */
import { nonNegativeInteger, v } from "@terse/options";
import { constant } from "./constant.ts";
import { cosine } from "./cosine.ts";
import { exponential } from "./exponential.ts";
import { linear } from "./linear.ts";
import { multiStep } from "./multi-step.ts";
import type { Schedule } from "./schedule.ts";
import { warmupStableDecay } from "./warmup-stable-decay.ts";

/** Every schedule by its name in recipes; the first is the default. */
export const schedules = {
  cosine,
  linear,
  constant,
  exponential,
  "multi-step": multiStep,
  "warmup-stable-decay": warmupStableDecay,
} as const;

/** Options that all schedules have. */
export const scheduleOptions = {
  warmup: v.optional(nonNegativeInteger, 0), // steps, at most half the run
};

/** The `schedule` section of a recipe, and of the recipe itself its length and its highest learning rate. */
interface ScheduledRun {
  readonly name: keyof typeof schedules;
  readonly warmup: number;
  readonly steps: number;
  readonly lr: number;
}

/** The learning rate of step t, from 0, of a run of `steps`. `lr` is the highest. */
export function learningRate(t: number, { name, warmup: wanted, steps, lr, ...options }: ScheduledRun): number {
  const warmup = warmupWithin(wanted, steps);
  const { share, warmupShare } = schedules[name] as Schedule<object>;
  if (t >= warmup) return lr * share(t - warmup, steps - warmup, options);
  return warmupShare ? lr * warmupShare(t, warmup, options) : (lr * (t + 1)) / warmup;
}

/** A warm-up longer than half the run is cut to half of it, so that a short run reaches its learning rate too. */
export const warmupWithin = (warmup: number, steps: number): number => Math.min(warmup, Math.floor(steps / 2));
