/** Texts, for the registry. */
import { createHash } from "node:crypto";
import { positiveInteger, text, unitInterval, v } from "@terse/options";
import { DataError } from "../data-error.ts";
import type { DatasetEntry } from "../dataset.ts";
import { documents } from "../documents/documents.ts";
import { SampledData } from "../sampled-data.ts";
import { byteTokenizer } from "../tokenizers/byte-tokenizer.ts";
import { tokenizerFiles } from "../tokenizers/tokenizer-files.ts";
import { openTokenizer, vocabularyOf } from "../tokenizers/tokenizers.ts";
import { TokenSamples } from "../tokens/token-samples.ts";
import { part, tokensInMemory } from "../tokens/token-source.ts";
import { tokenized } from "../tokens/tokenized-text.ts";
import { TextData, textData } from "./text-data.ts";
import { type TextForm, textForm } from "./text-form.ts";

const textOptions = v.object({
  path: v.optional(text), // a file or folder of text, jsonl, parquet or tsv; the TypeScript declarations of the installed packages if absent
  tokenizer: v.optional(text, "bytes"), // bytes, gpt2, or the path of a tokenizer.json
  column: v.optional(text), // of jsonl, parquet and tsv; with tokens "text" if absent, and bytes are then those of the files as they are
  blockSize: v.optional(positiveInteger), // tokens a row; the model's context if absent
  validationFraction: v.optional(unitInterval, 0.1),
});
type TextOptions = v.InferOutput<typeof textOptions>;

/** Bytes of plain text, in windows that begin anywhere; else tokens, cut into rows. */
export const textEntry: DatasetEntry = {
  options: textOptions,
  fields: ["tokens", "next"],
  tokenizer: ({ tokenizer = "bytes" }: Partial<TextOptions>) => openTokenizer(tokenizer),
  tokenizerFiles: ({ tokenizer = "bytes" }: Partial<TextOptions>) => tokenizerFiles(tokenizer),
  facts: ({ blockSize, tokenizer = "bytes" }: TextOptions) => ({
    vocabulary: vocabularyOf(tokenizer),
    length: blockSize,
  }),
  async open(options: TextOptions, { length, thread: _, progress: __, ...given }) {
    const { path, tokenizer = "bytes", validationFraction } = options;
    const { column, remarks }: TextForm =
      options.column === undefined && path !== undefined
        ? await textForm(path)
        : { column: options.column, remarks: [] };
    const blockSize = options.blockSize ?? length!;
    const sizes = { blockSize, validationFraction };
    if (tokenizer === "bytes") {
      const data =
        path === undefined || column === undefined
          ? await textData({ ...given, path, ...sizes })
          : new TextData(await joined(path, column), path, { ...given, ...sizes });
      data.remarks = remarks;
      return data;
    }
    if (path === undefined)
      throw new DataError(
        `data.tokenizer is ${tokenizer}, and data.path names no text; the text that needs no path is read as bytes.`,
      );
    return new SampledData(await tokenizedSamples({ path, tokenizer, column: column ?? "text", ...sizes }), given);
  },
};

/** The documents with a newline behind each. */
async function joined(path: string, column: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const { text, ends } of documents(path, { column }))
    parts.push(byteTokenizer.encode(ends && !text.endsWith("\n") ? `${text}\n` : text));
  return new Uint8Array(Buffer.concat(parts));
}

/** All of a text in memory; its last tokens are held out. */
async function tokenizedSamples({
  path,
  tokenizer: name,
  column,
  blockSize,
  validationFraction,
}: {
  path: string;
  tokenizer: string;
  column: string;
  blockSize: number;
  validationFraction: number;
}): Promise<TokenSamples> {
  const tokenizer = await openTokenizer(name);
  const { tokens, fingerprint } = await tokenized(path, tokenizer, column);
  const all = tokensInMemory(path, tokens);
  const cut = tokens.length - Math.floor(tokens.length * validationFraction);
  const begin = cut < tokens.length ? cut : 0; // of the prompt
  return new TokenSamples({
    source: path,
    training: [part(all, 0, cut)],
    validation: cut < tokens.length ? [part(all, cut, tokens.length)] : [],
    blockSize,
    vocabulary: tokenizer.vocabulary,
    fingerprint: fingerprintWith(fingerprint, cut, blockSize),
    prompt: tokenizer.decode(tokens.subarray(begin, begin + 8)),
  });
}

const fingerprintWith = (fingerprint: string, ...numbers: readonly number[]) =>
  createHash("sha256")
    .update(`${fingerprint} ${numbers.join(" ")}`)
    .digest("hex");
