/**
 * Half a cosine from 1 down to `final` in the last step. Loshchilov and Hutter 2017, equation 5 (one cycle),
 * https://arxiv.org/abs/1608.03983
 */
import { nonNegative, v } from "@terse/options";
import type { Schedule } from "./schedule.ts";

const options = v.object({
  final: v.optional(nonNegative, 0.1), // of lr, at the last step
});

export const cosine: Schedule<v.InferOutput<typeof options>> = {
  options,
  share: (t, n, { final }) => (n < 2 ? 1 : final + ((1 - final) * (1 + Math.cos((Math.PI * t) / (n - 1)))) / 2),
};
