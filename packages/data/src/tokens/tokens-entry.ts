/** Files of tokens, for the registry. */
import { positiveInteger, text, unitInterval, v } from "@terse/options";
import { DataError } from "../data-error.ts";
import type { SampledEntry } from "../dataset.ts";
import { gpt2Vocabulary } from "../tokenizers/gpt2-tokenizer.ts";
import { tokenizerFiles } from "../tokenizers/tokenizer-files.ts";
import { openTokenizer } from "../tokenizers/tokenizers.ts";
import { openTokenFiles, tokenInventory } from "./token-files.ts";
import { TokenSamples } from "./token-samples.ts";

const tokensOptions = v.object({
  path: text, // a .bin file of tokens, or a folder of them, in which the validation split is held out by its name
  vocabulary: v.optional(positiveInteger, gpt2Vocabulary), // ids are below it
  // for the model's samples: gpt2, or the path of a tokenizer.json; gpt2 if absent and the vocabulary is GPT-2's
  tokenizer: v.optional(text),
  blockSize: v.optional(positiveInteger), // tokens a row; the model's context if absent
  validationFraction: v.optional(unitInterval, 0.1), // of the last file, where none is held out
});
type TokensOptions = v.InferOutput<typeof tokensOptions>;

const nameOf = ({ tokenizer, vocabulary }: TokensOptions) =>
  tokenizer ?? (vocabulary === gpt2Vocabulary ? "gpt2" : undefined);

const tokenizerOf = async (options: TokensOptions) => {
  const [name, { vocabulary }] = [nameOf(options), options];
  if (name === undefined) return undefined;
  const opened = await openTokenizer(name);
  if (opened.vocabulary > vocabulary)
    throw new DataError(
      `data.tokenizer ${name} has ${opened.vocabulary} tokens, and data.vocabulary is ${vocabulary}; set data.vocabulary to ${opened.vocabulary}.`,
    );
  return opened;
};

export const tokensEntry: SampledEntry = {
  options: tokensOptions,
  fields: ["tokens", "next"],
  tokenizer: tokenizerOf,
  processorFiles: async (options: TokensOptions) => {
    const name = nameOf(options);
    return name === undefined ? undefined : tokenizerFiles(name);
  },
  facts: ({ vocabulary, blockSize }: TokensOptions) => ({ vocabulary, length: blockSize }),
  inventory: ({ path }: TokensOptions) => tokenInventory(path),
  async samples(options: TokensOptions, { length, seed, holdOutAll }) {
    const { path, vocabulary } = options;
    const blockSize = options.blockSize ?? length!;
    const tokenizer = await tokenizerOf(options);
    const files = await openTokenFiles({ ...options, holdOutAll });
    const shown = files.validation[0] ?? files.training[0]!;
    try {
      const prompt = await tokenizer?.decode(await shown.read(0, Math.min(8, shown.length)));
      return new TokenSamples({ ...files, source: path, blockSize, vocabulary, prompt, seed });
    } catch (error) {
      for (const file of [...files.training, ...files.validation]) await file.close?.();
      throw error;
    }
  },
};
