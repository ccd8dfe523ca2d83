import { flag, oneOf, positiveInteger, text, v } from "@terse/options";
import { roles } from "@terse/tensor";

const pattern = v.pipe(
  text,
  v.check((source) => {
    try {
      return new RegExp(source) !== undefined;
    } catch {
      return false;
    }
  }, "must be a regular expression over parameter names, such as ^blocks.0."),
);

export const momentumSyncOptions = v.object({
  /** Which layers: by a word, by the role of their parameters, or by name. */
  segments: v.optional(
    v.union([oneOf(["none", "all", "first-and-last"]), v.object({ role: oneOf(roles) }), v.object({ match: pattern })]),
    "none",
  ),
  every: v.optional(positiveInteger, 10), // k steps
  late: v.optional(flag, false), // the mean of one step is applied in the next
});

export type MomentumSyncOptions = v.InferOutput<typeof momentumSyncOptions>;
