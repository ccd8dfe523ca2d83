/** The dataset of conversations and instructions, for the registry. */
import { createHash } from "node:crypto";
import { oneOf, positiveInteger, text, unitInterval, v } from "@terse/options";
import { DataError } from "../data-error.ts";
import type { SampledEntry } from "../dataset.ts";
import { evenlySpread } from "../evenly-spread.ts";
import { tokenizerFiles } from "../tokenizers/tokenizer-files.ts";
import { openTokenizer, vocabularyOf } from "../tokenizers/tokenizers.ts";
import { ChatSamples, targetsOf } from "./chat-samples.ts";
import { chatTemplate } from "./chat-template.ts";
import { inventoryOfRows, openRows } from "./open-rows.ts";
import { packBestFit, packWrapped } from "./pack-rows.ts";
import type { StoredRow } from "./stored-row.ts";

const options = v.object({
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
export type ChatOptions = v.InferOutput<typeof options>;

export const chatEntry: SampledEntry = {
  options,
  fields: ["tokens", "next"],
  tokenizer: ({ tokenizer, endOfText }: ChatOptions) => openTokenizer(tokenizer, { endOfText }),
  processorFiles: async ({ tokenizer, template, endOfText }: ChatOptions) => {
    const files = await tokenizerFiles(tokenizer, { endOfText });
    try {
      return { ...files, "chat_template.jinja": chatTemplate(tokenizer, template).text };
    } catch (error) {
      if (error instanceof DataError) return files; // rows of texts need none
      throw error;
    }
  },
  facts: ({ tokenizer, blockSize }: ChatOptions) => ({ vocabulary: vocabularyOf(tokenizer), length: blockSize }),
  inventory: ({ path }: ChatOptions) => inventoryOfRows(path),
  async samples(given: ChatOptions, { length, progress, holdOutAll }) {
    const { path, packing, validationFraction } = given;
    const block = given.blockSize ?? length!;
    if (block < 2)
      throw new DataError(`data.blockSize is ${block}, and a row has 2 tokens or more; set it to 2 or more.`);
    const most = packing === "wrapped" ? Number.POSITIVE_INFINITY : block;
    const rows = await openRows(given, { block, most }, progress);
    const { pad, prompt, ends, inventory, remarks } = rows;
    try {
      const [training, validation] = rows.heldOut
        ? [rows.training, rows.heldOut]
        : heldOutEvenly(
            rows.training,
            holdOutAll ? rows.training.length : Math.floor(rows.training.length * validationFraction),
          );
      const pack = { none: alone, "best-fit": packBestFit, wrapped: packWrapped }[packing];
      const samples = pack(training, block).filter((sample) => targetsOf(sample) > 0);
      return new ChatSamples({
        source: path,
        training: samples,
        validation: alone(validation.map((row) => row.part(0, block))).filter((sample) => targetsOf(sample) > 0),
        packed: packing !== "none",
        fingerprint: fingerprintOf([training, validation], `chat ${block} ${packing}`),
        ...{ pad, prompt, ends, inventory, close: rows.close },
        remarks: [
          ...remarks,
          ...(packing === "none" || training.length === 0
            ? []
            : [`data: ${training.length} rows are packed into ${samples.length} of up to ${block} tokens`]),
        ],
      });
    } catch (error) {
      rows.close();
      throw error;
    }
  },
};

const alone = (rows: readonly StoredRow[]) => rows.map((row) => [row]);

/** Every so many rows are held out, because a file may be in the order of topics. */
function heldOutEvenly(
  rows: readonly StoredRow[],
  count: number,
): [training: readonly StoredRow[], validation: readonly StoredRow[]] {
  const places = new Set(evenlySpread(count, rows.length));
  return [rows.filter((_, i) => !places.has(i)), rows.filter((_, i) => places.has(i))];
}

function fingerprintOf(parts: readonly (readonly StoredRow[])[], options: string): string {
  const hash = createHash("sha256").update(options);
  for (const rows of parts) {
    hash.update(` ${rows.length}`);
    for (const row of rows) {
      const { ids, learned } = row.read();
      hash
        .update(` ${ids.length} `)
        .update(new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength))
        .update(learned);
    }
  }
  return hash.digest("hex");
}
