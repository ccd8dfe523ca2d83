import { flag, positive, positiveInteger, text, unitInterval, v } from "@terse/options";

/** What LoRA may be, with PEFT's defaults. PEFT's words for them: r, lora_alpha, lora_dropout, target_modules. */
export const loraOptions = v.object({
  rank: v.optional(positiveInteger, 8), // r, rows of A and columns of B
  alpha: v.optional(positive, 8), // s = alpha / r
  rslora: v.optional(flag, false), // s = alpha / √r
  dropout: v.optional(unitInterval, 0), // of what A reads
  // Ends of modules' names, or all-linear: every linear layer but the head. Those of PEFT for the model if absent.
  targets: v.optional(v.union([text, v.array(text)])),
  modulesToSave: v.optional(v.array(text), []), // modules that are trained whole, such as a new head
});

export type LoraOptions = v.InferOutput<typeof loraOptions>;

/** The target that stands for every linear layer but the head. */
export const allLinear = "all-linear";
