/** Texts, for the registry. */
import { createHash } from "node:crypto";
import { positiveInteger, text, unitInterval, v } from "@terse/options";
import { DataError } from "../data-error.ts";
import type { SampledEntry } from "../dataset.ts";
import { hashPages } from "../positional-file.ts";
import { tokenizerFiles } from "../tokenizers/tokenizer-files.ts";
import { openTokenizer, vocabularyOf } from "../tokenizers/tokenizers.ts";
import { TokenSamples } from "../tokens/token-samples.ts";
import { joined, part, type TokenSource, type Tokens, tokensInMemory } from "../tokens/token-source.ts";
import { tokenized } from "../tokens/tokenized-text.ts";
import { bytesOfFiles } from "./bytes-of-files.ts";
import { type Stretch, splitText } from "./split-text.ts";
import { textFiles } from "./text-files.ts";
import { type TextForm, textForm } from "./text-form.ts";
import { installationRoot, typescriptDeclarations } from "./typescript-declarations.ts";

const textOptions = v.object({
  path: v.optional(text), // a file or folder of text, jsonl, parquet or tsv; the TypeScript declarations of the installed packages if absent
  tokenizer: v.optional(text, "bytes"), // bytes, gpt2, or the path of a tokenizer.json
  endOfText: v.optional(text), // the token between two texts; the tokenizer's own if absent
  column: v.optional(text), // of jsonl, parquet and tsv; with tokens "text" if absent, and bytes are then those of the files as they are
  blockSize: v.optional(positiveInteger), // tokens a row; the model's context if absent
  validationFraction: v.optional(unitInterval, 0.1),
});
type TextOptions = v.InferOutput<typeof textOptions>;

export const textEntry: SampledEntry = {
  options: textOptions,
  fields: ["tokens", "next"],
  tokenizer: ({ tokenizer = "bytes" }: Partial<TextOptions>) => openTokenizer(tokenizer),
  processorFiles: ({ tokenizer = "bytes" }: Partial<TextOptions>) => tokenizerFiles(tokenizer),
  facts: ({ blockSize, tokenizer = "bytes" }: TextOptions) => ({
    vocabulary: vocabularyOf(tokenizer),
    length: blockSize,
  }),
  async samples(options: TextOptions, { length, seed }) {
    const { tokenizer: name = "bytes", validationFraction: fraction } = options;
    const { all, fingerprint, source, remarks } = await sourceOf(options, name);
    try {
      const [unit, stretches] = name === "bytes" ? ["byte", splitText] : ["token", splitAtEnd];
      const { training, validation } = stretches(all.length, fraction);
      const of = (parts: readonly Stretch[]) => [
        joined(
          source,
          parts.map(([begin, end]) => part(all, begin, end)),
        ),
      ];
      const shown = of(fraction > 0 ? validation : training)[0]!;
      const tokenizer = await openTokenizer(name);
      return new TokenSamples({
        source,
        unit,
        training: of(training),
        validation: of(validation),
        blockSize: options.blockSize ?? length!,
        vocabulary: tokenizer.vocabulary,
        seed,
        fingerprint: `${fingerprint} ${fraction}`,
        remarks,
        prompt: await tokenizer.decode(await shown.read(0, Math.min(name === "bytes" ? 24 : 8, shown.length))),
      });
    } catch (error) {
      await all.close?.();
      throw error;
    }
  },
};

interface Source {
  readonly all: TokenSource;
  readonly fingerprint: string;
  readonly source: string; // the path or name, for messages
  readonly remarks?: readonly string[];
}

/** Bytes of files are read where they are; tokens, and texts of columns, are in memory. */
async function sourceOf({ path, ...options }: TextOptions, tokenizer: string): Promise<Source> {
  if (path === undefined) {
    if (tokenizer !== "bytes")
      throw new DataError(
        `data.tokenizer is ${tokenizer}, and data.path names no text; the text that needs no path is read as bytes.`,
      );
    const source = "the installed TypeScript declarations";
    const bytes = await typescriptDeclarations(installationRoot());
    return { all: tokensInMemory(source, bytes), fingerprint: sha256(bytes), source };
  }
  const form: TextForm = options.column === undefined ? await textForm(path) : { column: options.column, remarks: [] };
  if (tokenizer !== "bytes" || form.column !== undefined) {
    const endOfText = options.endOfText ?? (tokenizer === "bytes" ? "\n" : undefined);
    const opened = await openTokenizer(tokenizer, { endOfText });
    const { tokens, fingerprint, remarks } = await tokenized(path, opened, form.column ?? "text");
    return { all: tokensInMemory(path, tokens), fingerprint, source: path, remarks };
  }
  if (options.endOfText !== undefined)
    throw new DataError(
      `data.endOfText is ${JSON.stringify(options.endOfText)}, and the bytes of ${path} are read as they are; set data.column or data.tokenizer too, or leave it out.`,
    );
  const all = bytesOfFiles(path, await textFiles(path));
  const hash = createHash("sha256");
  await hashPages(hash, all.length, async (at, count) => Uint8Array.from(await all.read(at, count)));
  return { all, fingerprint: hash.digest("hex"), source: path, remarks: form.remarks };
}

/** The last tokens are held out, as in nanoGPT's files. */
function splitAtEnd(length: number, fraction: number): { training: Stretch[]; validation: Stretch[] } {
  const cut = length - Math.floor(length * fraction);
  return { training: [[0, cut]], validation: [[cut, length]] };
}

const sha256 = (bytes: Tokens) => createHash("sha256").update(bytes).digest("hex");
