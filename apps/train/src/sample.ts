/** `./terse sample RUN`: the model of a run, or of a folder with weights, continues a text, token by token. */
import { resolve } from "node:path";
import { philox, wordsOf } from "@terse/codecs";
import { chatPrompt, datasets, openTokenizer, type Tokenizer } from "@terse/data";
import { continuesText, generate, type Sampling, type TextModel } from "@terse/models";
import { OptionsError, print, printText } from "@terse/options";
import { describedAdapter } from "./adapter/adapter-folder.ts";
import { foundTokenizer, isAdapterFolder } from "./adapter/base.ts";
import type { SampleArguments } from "./arguments.ts";
import { foundDataOf } from "./saves/found-tokenizer.ts";
import { knownTokenizer, tokenizerOfWeights } from "./saves/initial-weights.ts";
import { isModelFolder, loadModelOf, modelFolderOf, newestRun, saveOfModel } from "./saves/model-of-run.ts";

export interface SampleOptions extends Sampling {
  readonly length: number; // tokens to write
  readonly seed: number;
  /** The tokens with which the text ends before it has that length. */
  readonly ends?: readonly (readonly number[])[];
}

export async function sample({
  run = newestRun(),
  prompt,
  bytes,
  seed,
  chat,
  template,
  base,
  ...sampling
}: SampleArguments): Promise<number> {
  const model = await loadModelOf(run, { base, remark: (words) => print(words, process.stderr) });
  if (!continuesText(model))
    throw new OptionsError([`the model of ${run} writes no text; name a run of a language model`]);
  const tokenizer = await tokenizerOf(run, model.vocabulary, base);
  if (!tokenizer)
    throw new OptionsError([
      `${run} has no tokenizer, and none that is known has its model's ${model.vocabulary} tokens; put the model's tokenizer.json there`,
    ]);
  if (tokenizer.vocabulary > model.vocabulary)
    throw new OptionsError([
      `the tokenizer of ${run} has ${tokenizer.vocabulary} tokens, and its model ${model.vocabulary}; put the model's tokenizer.json there`,
    ]);
  const options = { ...sampling, length: bytes, seed };
  if (chat) {
    const { text, ends } = await chatPrompt(await chatOptionsOf(run, model.vocabulary, { template, base }), prompt);
    printText(await continueText(model, tokenizer, text, { ...options, ends }));
  } else printText(`${prompt}${await continueText(model, tokenizer, prompt, options)}`);
  return 0;
}

/**
 * For a run, the tokenizer of its data. For a folder of weights, its tokenizer.json, else the known one with as many
 * tokens.
 */
async function tokenizerOf(run: string, vocabulary: number, base: string | undefined): Promise<Tokenizer | undefined> {
  if (isModelFolder(run)) {
    const name = await tokenizerIn(run, base, vocabulary);
    return name === undefined ? undefined : openTokenizer(name);
  }
  const data = await foundDataOf(run, base);
  return datasets[data.name].tokenizer?.(data);
}

/** The tokenizer in a folder of weights, or in that of the base of an adapter; else the known one with as many tokens. */
async function tokenizerIn(run: string, moved: string | undefined, vocabulary: number): Promise<string | undefined> {
  const own = tokenizerOfWeights(run);
  if (own !== undefined) return isModelFolder(run) ? own : foundTokenizer(await modelFolderOf(run), own, moved);
  if (!isAdapterFolder(resolve(run))) return knownTokenizer(run, vocabulary);
  const { base } = await describedAdapter(resolve(run), moved);
  if (!("folder" in base)) return knownTokenizer(run, vocabulary);
  return tokenizerOfWeights(base.folder) ?? knownTokenizer(base.folder, vocabulary);
}

/** Which template asks for an answer: that of a run's data, or of a folder's tokenizer. */
async function chatOptionsOf(
  run: string,
  vocabulary: number,
  { template, base }: Pick<SampleArguments, "template" | "base">,
): Promise<Parameters<typeof chatPrompt>[0]> {
  const own = isModelFolder(run) ? {} : (saveOfModel(run).manifest.recipe.data as { template?: string; date?: string });
  const tokenizer = (await tokenizerIn(run, base, vocabulary))!; // the model has one, or was refused
  return { tokenizer, template: template ?? own.template, date: own.date };
}

/** The text that the model writes after `prompt`. The same seed writes the same text. */
export async function continueText(
  model: TextModel,
  tokenizer: Tokenizer,
  prompt: string,
  { seed, length, ends, temperature, topK, topP }: SampleOptions,
): Promise<string> {
  const { vocabulary, endOfText } = tokenizer;
  let ids = [...(await tokenizer.encode(prompt === "" ? "\n" : prompt))];
  if (ids.length === 0) {
    if (endOfText === undefined)
      throw new OptionsError([`the prompt ${JSON.stringify(prompt)} has no tokens; name one with a word in it`]);
    ids = [endOfText];
  }
  const drawn = { temperature, topK, topP, random: (i: number) => uniform(seed, i) };
  const written = await generate(model, ids, { length, ends, vocabulary, ...drawn });
  return behind(await tokenizer.decode(ids), await tokenizer.decode([...ids, ...written]));
}

/**
 * What `all` has after the text with which it begins. Both are decoded from their tokens, because a token's text
 * depends on the tokens before it: the first token of a text has no space, and a token may complete the bytes of a
 * letter. Where the two texts differ earlier, the result begins there.
 */
export function behind(begin: string, all: string): string {
  let same = 0;
  while (same < begin.length && begin[same] === all[same]) same++;
  // A pair of surrogates is one letter.
  return all.slice(same > 0 && /[\uD800-\uDBFF]/.test(all[same - 1]!) ? same - 1 : same);
}

/** The i-th number in [0, 1) of a seed. */
function uniform(seed: number, i: number): number {
  return philox([i, 0, 0, 0], wordsOf(seed))[0] / 2 ** 32;
}
