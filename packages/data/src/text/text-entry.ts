/** Texts, for the registry. */
import { createHash } from "node:crypto";
import { positiveInteger, text, unitInterval, v } from "@terse/options";
import { DataError } from "../data-error.ts";
import type { SampledEntry } from "../dataset.ts";
import { hashPages } from "../positional-file.ts";
import type { SampleFacts } from "../samples.ts";
import { tokenizerFiles } from "../tokenizers/tokenizer-files.ts";
import { openTokenizer, vocabularyOf } from "../tokenizers/tokenizers.ts";
import { TokenSamples } from "../tokens/token-samples.ts";
import { joined, part, type TokenSource, tokensInMemory } from "../tokens/token-source.ts";
import { tokenizedText } from "../tokens/tokenized-text.ts";
import { bytesOfFiles } from "./bytes-of-files.ts";
import { type Stretch, splitText } from "./split-text.ts";
import { textFiles } from "./text-files.ts";
import { declarationsAsBytes, declarationsName } from "./typescript-declarations.ts";

const textOptions = v.object({
  // A file or folder of text, jsonl, json, csv, tsv or parquet; the TypeScript declarations of the installed packages
  // if absent.
  path: v.optional(text),
  tokenizer: v.optional(text, "bytes"), // bytes, gpt2, or the path of a tokenizer.json
  endOfText: v.optional(text), // the token between two texts; the tokenizer's own if absent
  // of jsonl, json, csv, tsv and parquet; if absent, "text" with tokens; with bytes files are read as they are
  column: v.optional(text),
  blockSize: v.optional(positiveInteger), // tokens a row; the model's context if absent
  validationFraction: v.optional(unitInterval, 0.1),
});
type TextOptions = v.InferOutput<typeof textOptions>;

export const textEntry: SampledEntry = {
  options: textOptions,
  fields: ["tokens", "next"],
  tokenizer: ({ tokenizer = "bytes" }: Partial<TextOptions>) => openTokenizer(tokenizer),
  processorFiles: ({ tokenizer = "bytes", endOfText }: Partial<TextOptions>) =>
    tokenizerFiles(tokenizer, { endOfText: tokenizer === "bytes" ? undefined : endOfText }),
  facts: ({ blockSize, tokenizer = "bytes" }: TextOptions) => ({
    vocabulary: vocabularyOf(tokenizer),
    length: blockSize,
  }),
  inventory: async ({ path, tokenizer, column }: TextOptions) =>
    path === undefined ? undefined : (await textFiles(path, readAs(tokenizer), column)).inventory,
  async samples(options: TextOptions, { length, seed, holdOutAll = false }) {
    const { tokenizer: name = "bytes", validationFraction: fraction } = options;
    const { source, training: all, heldOut, fingerprint, inventory, remarks } = await textOf(options, name);
    try {
      const [unit, stretches] = name === "bytes" ? ["byte", splitText] : ["token", splitAtEnd];
      const isWhole = holdOutAll && heldOut === undefined;
      const parts = heldOut === undefined && !holdOutAll ? stretches(all.length, fraction) : undefined;
      const of = (parts: readonly Stretch[]) =>
        joined(
          source,
          parts.map(([begin, end]) => part(all, begin, end)),
        );
      const training = parts ? of(parts.training) : all;
      const validation = parts ? of(parts.validation) : (heldOut ?? all);
      const shown = validation.length > 0 ? validation : training;
      const tokenizer = await openTokenizer(name);
      return new TokenSamples({
        source,
        unit,
        training: isWhole ? [] : [training],
        validation: [validation],
        blockSize: options.blockSize ?? length!,
        vocabulary: tokenizer.vocabulary,
        seed,
        fingerprint: `${fingerprint} ${parts ? fraction : "held out by name"}`,
        inventory,
        remarks,
        prompt: await tokenizer.decode(await shown.read(0, Math.min(name === "bytes" ? 24 : 8, shown.length))),
      });
    } catch (error) {
      for (const text of [all, heldOut]) await text?.close?.();
      throw error;
    }
  },
};

const readAs = (tokenizer = "bytes") => (tokenizer === "bytes" ? "bytes" : "texts");

interface Text extends Pick<SampleFacts, "source" | "fingerprint" | "inventory" | "remarks"> {
  readonly training: TokenSource;
  /** The files that are held out by their names; absent where none is. */
  readonly heldOut?: TokenSource | undefined;
}

/** Bytes of files are read where they are; tokens, and texts of columns, are in memory. Throws `DataError`. */
async function textOf({ path, column, endOfText: end }: TextOptions, tokenizer: string): Promise<Text> {
  if (path === undefined) {
    const bytes = await declarationsAsBytes(tokenizer);
    const fingerprint = createHash("sha256").update(bytes).digest("hex");
    return { source: declarationsName, training: tokensInMemory(declarationsName, bytes), fingerprint };
  }
  if (tokenizer !== "bytes")
    return {
      source: path,
      ...(await tokenizedText(path, await openTokenizer(tokenizer, { endOfText: end }), column)),
    };
  const found = await textFiles(path, "bytes", column);
  if (found.column !== undefined)
    return {
      source: path,
      ...(await tokenizedText(path, await openTokenizer("bytes", { endOfText: end ?? "\n" }), found.column)),
    };
  if (end !== undefined)
    throw new DataError(
      `data.endOfText is ${JSON.stringify(end)}, and the bytes of ${path} are read as they are; set data.column or data.tokenizer too, or leave it out.`,
    );
  const training = await bytesOfFiles(path, found.training);
  const heldOut = found.heldOut.length > 0 ? await bytesOfFiles(path, found.heldOut) : undefined;
  const digests: string[] = [];
  for (const text of [training, ...(heldOut ? [heldOut] : [])]) digests.push(await digestOf(text));
  const { inventory, remarks } = found;
  return { source: path, training, heldOut, fingerprint: digests.join(" "), inventory, remarks };
}

async function digestOf(text: TokenSource): Promise<string> {
  const hash = createHash("sha256");
  await hashPages(hash, text.length, async (at, count) => Uint8Array.from(await text.read(at, count)));
  return hash.digest("hex");
}

/** The last tokens are held out, as in nanoGPT's files. */
function splitAtEnd(length: number, fraction: number): { training: Stretch[]; validation: Stretch[] } {
  const cut = length - Math.floor(length * fraction);
  return { training: [[0, cut]], validation: [[cut, length]] };
}
