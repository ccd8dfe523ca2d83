/** The dataset of conversations and instructions, for the registry. */
import { createHash } from "node:crypto";
import { DataError } from "../data-error.ts";
import type { SampledEntry } from "../dataset.ts";
import { evenlySpread } from "../evenly-spread.ts";
import { tokenizerFiles } from "../tokenizers/tokenizer-files.ts";
import { openTokenizer, vocabularyOf } from "../tokenizers/tokenizers.ts";
import { type ChatOptions, chatOptions } from "./chat-options.ts";
import { chatSamples, targetsOf } from "./chat-samples.ts";
import { templateIfAny } from "./chat-template.ts";
import { inventoryOfRows, openRows } from "./open-rows.ts";
import { packBestFit, packWrapped } from "./pack-rows.ts";
import type { StoredRow } from "./stored-row.ts";

export const chatEntry: SampledEntry = {
  options: chatOptions,
  fields: ["tokens", "next"],
  tokenizer: ({ tokenizer, endOfText }: ChatOptions) => openTokenizer(tokenizer, { endOfText }),
  processorFiles: async ({ tokenizer, template, endOfText }: ChatOptions) => {
    const files = await tokenizerFiles(tokenizer, { endOfText });
    const text = templateIfAny(tokenizer, template);
    return text === undefined ? files : { ...files, "chat_template.jinja": text };
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
      return chatSamples({
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
