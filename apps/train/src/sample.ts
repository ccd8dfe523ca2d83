/** `./terse sample RUN`: the model of a run, or of a folder with weights, continues a text, token by token. */
import { philox, wordsOf } from "@terse/codecs";
import { chatPrompt, datasets, openTokenizer, type Tokenizer } from "@terse/data";
import { continuesText, generate, type Sampling, type TextModel } from "@terse/models";
import { OptionsError, print } from "@terse/options";
import type { SampleArguments } from "./arguments.ts";
import { knownTokenizer, tokenizerOfWeights } from "./saves/initial-weights.ts";
import { isModelFolder, loadModelOf, newestRun, saveOfModel } from "./saves/model-of-run.ts";

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
  ...sampling
}: SampleArguments): Promise<number> {
  const model = await loadModelOf(run, (words) => print(words, process.stderr));
  if (!continuesText(model))
    throw new OptionsError([`the model of ${run} writes no text; name a run of a language model`]);
  const tokenizer = await tokenizerOf(run, model.vocabulary);
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
    const { text, ends } = await chatPrompt(chatOptionsOf(run, model.vocabulary, template), prompt);
    print(await continueText(model, tokenizer, text, { ...options, ends }));
  } else print(`${prompt}${await continueText(model, tokenizer, prompt, options)}`);
  return 0;
}

/**
 * For a run, the tokenizer of its data. For a folder of weights, its tokenizer.json, else the known one with as many
 * tokens.
 */
async function tokenizerOf(run: string, vocabulary: number): Promise<Tokenizer | undefined> {
  if (isModelFolder(run)) {
    const name = tokenizerOfWeights(run) ?? knownTokenizer(vocabulary);
    return name === undefined ? undefined : openTokenizer(name);
  }
  const { data } = saveOfModel(run).manifest.recipe;
  return datasets[data.name].tokenizer?.(data);
}

/** Which template asks for an answer: that of a run's data, or of a folder's tokenizer. */
function chatOptionsOf(
  run: string,
  vocabulary: number,
  template: string | undefined,
): Parameters<typeof chatPrompt>[0] {
  const own = isModelFolder(run) ? {} : (saveOfModel(run).manifest.recipe.data as { template?: string; date?: string });
  const tokenizer = tokenizerOfWeights(run) ?? knownTokenizer(vocabulary)!; // the model has one, or was refused
  return { tokenizer, template: template ?? own.template, date: own.date };
}

/** The text that the model writes after `prompt`. The same seed writes the same text. */
export async function continueText(
  model: TextModel,
  tokenizer: Tokenizer,
  prompt: string,
  { seed, ...options }: SampleOptions,
): Promise<string> {
  const { vocabulary, endOfText } = tokenizer;
  let ids = [...(await tokenizer.encode(prompt === "" ? "\n" : prompt))];
  if (ids.length === 0) {
    if (endOfText === undefined)
      throw new OptionsError([`the prompt ${JSON.stringify(prompt)} has no tokens; name one with a word in it`]);
    ids = [endOfText];
  }
  const written = await generate(model, ids, { ...options, vocabulary, random: (i) => uniform(seed, i) });
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
