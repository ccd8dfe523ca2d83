import { positiveInteger, text, unitInterval, v } from "@terse/options";
import { byteTokenizer } from "./byte-tokenizer.ts";
import type { DatasetEntry } from "./dataset.ts";
import { textData } from "./text-data.ts";

const textOptions = v.object({
  path: v.optional(text), // a file or folder; the TypeScript declarations of the installed packages if absent
  blockSize: v.optional(positiveInteger), // tokens a row; the model's context if absent
  validationFraction: v.optional(unitInterval, 0.1),
});
type TextOptions = v.InferOutput<typeof textOptions>;

const entries = {
  text: {
    options: textOptions,
    fields: ["tokens", "next"],
    tokenizer: byteTokenizer,
    facts: ({ blockSize }: TextOptions) => ({ vocabulary: byteTokenizer.vocabulary, length: blockSize }),
    open: ({ path, blockSize, validationFraction }: TextOptions, { length, ...given }) =>
      textData({ ...given, path, blockSize: blockSize ?? length!, validationFraction }),
  },
} satisfies Record<string, DatasetEntry>;

export type DatasetName = keyof typeof entries;

/** Every dataset by the name that recipes use. */
export const datasets: Readonly<Record<DatasetName, DatasetEntry>> = entries;
