/** From 1 in equal steps down to `final` in the last step. */
import { nonNegative, v } from "@terse/options";
import type { Schedule } from "./schedule.ts";

const options = v.object({
  final: v.optional(nonNegative, 0.1), // of lr, at the last step
});

export const linear: Schedule<v.InferOutput<typeof options>> = {
  options,
  share: (t, n, { final }) => (n < 2 ? 1 : 1 - ((1 - final) * t) / (n - 1)),
};
