/** The dataset of masked text, for the registry. */
import { createHash } from "node:crypto";
import { positiveInteger, text, unitInterval, v } from "@terse/options";
import type { SampledEntry } from "../dataset.ts";
import type { SampleFacts } from "../samples.ts";
import { textFiles } from "../text/text-files.ts";
import { declarationsAsBytes, declarationsName } from "../text/typescript-declarations.ts";
import { tokenizerFiles } from "../tokenizers/tokenizer-files.ts";
import { bertTokens, openTokenizer, vocabularyOf } from "../tokenizers/tokenizers.ts";
import { hasTokenFiles, openTokenFiles, tokenInventory } from "../tokens/token-files.ts";
import { joined, part, type TokenSource, tokensInMemory } from "../tokens/token-source.ts";
import { tokenizedText } from "../tokens/tokenized-text.ts";
import { MaskedTextSamples } from "./masked-text-samples.ts";

const options = v.object({
  // A file or folder of text, jsonl, json, csv, tsv or parquet, or of tokens, which ./terse data prepare writes; the
  // TypeScript declarations of the installed packages if absent.
  path: v.optional(text),
  tokenizer: v.optional(text, "bytes"), // bytes, gpt2, or the path of a tokenizer.json
  endOfText: v.optional(text), // the token between two texts; the tokenizer's own if absent
  column: v.optional(text), // of jsonl, json, csv, tsv and parquet; "text" if absent
  blockSize: v.optional(positiveInteger), // tokens a row; the model's context if absent
  maskFraction: v.optional(unitInterval, 0.15), // of the tokens, that are predicted
  validationFraction: v.optional(unitInterval, 0.1),
});
type Options = v.InferOutput<typeof options>;

export const maskedTextEntry: SampledEntry = {
  options,
  fields: ["tokens", "segments", "mask", "labels", "nextSentence"],
  processorFiles: ({ tokenizer }: Options) => tokenizerFiles(tokenizer, { bert: true }),
  facts: ({ tokenizer, blockSize }: Options) => ({ vocabulary: bertTokens(tokenizer).vocabulary, length: blockSize }),
  inventory: async ({ path, column }: Options) => {
    if (path === undefined) return undefined;
    return (await hasTokenFiles(path)) ? tokenInventory(path) : (await textFiles(path, "texts", column)).inventory;
  },
  async samples({ path, tokenizer: name, blockSize, maskFraction, ...rest }: Options, { length, seed, holdOutAll }) {
    const vocabulary = vocabularyOf(name);
    const parts = await partsOf({ path, tokenizer: name, vocabulary, holdOutAll, ...rest });
    const T = blockSize ?? length!;
    const seen = `${parts.fingerprint} ${T} ${maskFraction}`;
    try {
      return new MaskedTextSamples({
        ...parts,
        source: path ?? declarationsName,
        fingerprint: createHash("sha256").update(seen).digest("hex"),
        blockSize: T,
        special: bertTokens(name),
        vocabulary,
        maskFraction,
        seed,
      });
    } catch (error) {
      for (const part of [parts.training, parts.validation]) await part.close?.();
      throw error;
    }
  },
};

interface Parts extends Pick<SampleFacts, "fingerprint" | "inventory" | "remarks"> {
  readonly training: TokenSource;
  readonly validation: TokenSource;
}

/** The tokens of files of tokens, or else of texts, which are tokenized in memory. */
async function partsOf({
  path,
  tokenizer,
  vocabulary,
  endOfText,
  column,
  validationFraction,
  holdOutAll,
}: Pick<Options, "path" | "tokenizer" | "endOfText" | "column" | "validationFraction"> & {
  vocabulary: number;
  holdOutAll: boolean | undefined;
}): Promise<Parts> {
  const cutAt = (length: number) => (holdOutAll ? 0 : length - Math.floor(length * validationFraction));
  if (path === undefined) {
    const bytes = await declarationsAsBytes(tokenizer);
    const [cut, all] = [cutAt(bytes.length), tokensInMemory(declarationsName, bytes)];
    const fingerprint = `${createHash("sha256").update(bytes).digest("hex")} ${cut}`;
    return { training: part(all, 0, cut), validation: part(all, cut, all.length), fingerprint };
  }
  if (await hasTokenFiles(path)) {
    const { training, validation, ...rest } = await openTokenFiles({
      path,
      vocabulary,
      validationFraction,
      holdOutAll,
    });
    return { training: joined(path, training), validation: joined(path, validation), ...rest };
  }
  const opened = await openTokenizer(tokenizer, { endOfText });
  const { training, heldOut, fingerprint, ...rest } = await tokenizedText(path, opened, column);
  if (heldOut) return { training, validation: heldOut, fingerprint: `${fingerprint} held out by name`, ...rest };
  const cut = cutAt(training.length);
  return {
    training: part(training, 0, cut),
    validation: part(training, cut, training.length),
    fingerprint: `${fingerprint} ${cut}`,
    ...rest,
  };
}
