/** `./terse sample RUN`: the model of a run, or of a folder with weights, continues a text, token by token. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { philox, wordsOf } from "@terse/codecs";
import { datasets, openTokenizer, type Tokenizer } from "@terse/data";
import { continuesText, generate, type Sampling, type TextModel } from "@terse/models";
import { OptionsError } from "@terse/options";
import type { SampleArguments } from "./arguments.ts";
import { printable } from "./format.ts";
import { isModelFolder, loadModelOf, newestRun, saveOfModel } from "./saves/model-of-run.ts";

export interface SampleOptions extends Sampling {
  readonly length: number; // tokens to write
  readonly seed: number;
}

export async function sample({
  run = newestRun(),
  prompt,
  bytes,
  seed,
  ...sampling
}: SampleArguments): Promise<number> {
  const tokenizer = await tokenizerOf(run);
  const model = await loadModelOf(run);
  if (!tokenizer || !continuesText(model))
    throw new OptionsError([`the model of ${run} writes no text; name a run of a language model`]);
  if (tokenizer.vocabulary > model.vocabulary)
    throw new OptionsError([
      `the tokenizer of ${run} has ${tokenizer.vocabulary} tokens, and its model ${model.vocabulary}; put the model's tokenizer.json there`,
    ]);
  const text = await continueText(model, tokenizer, prompt, { ...sampling, length: bytes, seed });
  process.stdout.write(`${prompt}${printable(text)}\n`);
  return 0;
}

/** Of a run: that of its data. Of a folder with weights: its tokenizer.json, or else GPT-2's. */
async function tokenizerOf(run: string): Promise<Tokenizer | undefined> {
  if (isModelFolder(run)) return openTokenizer(existsSync(join(run, "tokenizer.json")) ? run : "gpt2");
  const { data } = saveOfModel(run).manifest.recipe;
  return datasets[data.name].tokenizer?.(data);
}

/** The text that the model writes after `prompt`. The same seed writes the same text. */
export async function continueText(
  model: TextModel,
  tokenizer: Tokenizer,
  prompt: string,
  { seed, ...options }: SampleOptions,
): Promise<string> {
  const ids = [...tokenizer.encode(prompt === "" ? "\n" : prompt)];
  const { vocabulary } = tokenizer;
  return tokenizer.decode(await generate(model, ids, { ...options, vocabulary, random: (i) => uniform(seed, i) }));
}

/** The i-th number in [0, 1) of a seed. */
function uniform(seed: number, i: number): number {
  return philox([i, 0, 0, 0], wordsOf(seed))[0] / 2 ** 32;
}
