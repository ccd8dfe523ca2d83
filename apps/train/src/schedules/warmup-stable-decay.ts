/**
 * The highest learning rate for most of the run, then down to `final` in its last part: a run can be continued from
 * where the decay began. Hu et al. 2024 (MiniCPM), §4, https://arxiv.org/abs/2404.06395
 *
 *   d = decay · n steps of decay;  x = 1/d, 2/d, … 1 in these
 *   linear         1 − (1 − final) x
 *   square-root    1 − (1 − final) √x       falls faster at first; Hägele et al. 2024, https://arxiv.org/abs/2405.18392
 */
import { nonNegative, oneOf, positive, v } from "@terse/options";
import type { Schedule } from "./schedule.ts";

const options = v.object({
  decay: v.optional(v.pipe(positive, v.maxValue(1)), 0.1), // of the steps after the warm-up
  shape: v.optional(oneOf(["linear", "square-root"]), "linear"),
  final: v.optional(nonNegative, 0.1), // of lr, at the last step
});

export const warmupStableDecay: Schedule<v.InferOutput<typeof options>> = {
  options,
  share(t, n, { decay, shape, final }) {
    const d = Math.max(1, Math.round(decay * n));
    const x = Math.max(0, t + 1 - (n - d)) / d;
    return 1 - (1 - final) * (shape === "linear" ? x : Math.sqrt(x));
  },
};
