import { oneOf, positiveInteger, text, unitInterval, v } from "@terse/options";

export const chatOptions = v.object({
  path: text, // a file or folder of jsonl, json or parquet
  tokenizer: v.optional(text, "bytes"), // bytes, gpt2, or the path of a tokenizer.json or of its folder
  // chatml, one of the templates of the tokenizer's folder by its name, or a file; the folder's own if absent
  template: v.optional(text),
  // The keys of rows, of one form; the form that the first row has if absent.
  messages: v.optional(text),
  prompt: v.optional(text),
  completion: v.optional(text),
  instruction: v.optional(text),
  input: v.optional(text),
  output: v.optional(text),
  loss: v.optional(oneOf(["answers", "all"]), "answers"), // which tokens are learned
  packing: v.optional(oneOf(["none", "best-fit", "wrapped"]), "none"), // several rows in one
  // The date of the day that templates write; those that write one are refused without it.
  date: v.optional(
    v.pipe(text, v.isoDate("must be a date such as 2026-11-26"), v.description("a date such as 2026-11-26")),
  ),
  endOfText: v.optional(text), // of rows without a template; the tokenizer's own if absent
  blockSize: v.optional(positiveInteger), // tokens of the longest row; the model's context if absent
  validationFraction: v.optional(unitInterval, 0.1),
});
export type ChatOptions = v.InferOutput<typeof chatOptions>;

/** The keys of rows. Those of one form are given, or none. */
export type RowKeys = Pick<ChatOptions, "messages" | "prompt" | "completion" | "instruction" | "input" | "output">;

/** How rows are read. */
export type ChatRowOptions = RowKeys &
  Pick<ChatOptions, "path" | "tokenizer" | "template" | "loss" | "date" | "endOfText">;
