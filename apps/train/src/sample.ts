/** `./terse sample RUN`: the model of a run continues a text, token by token. */
import { philox, wordsOf } from "@terse/codecs";
import { datasets, type Tokenizer } from "@terse/data";
import { continuesText, type TextModel } from "@terse/models";
import { OptionsError } from "@terse/options";
import { fromTypedArray, noGrad, scope } from "@terse/tensor";
import type { SampleArguments } from "./arguments.ts";
import { printable } from "./format.ts";
import { loadModelOf, newestRun } from "./saves/model-of-run.ts";
import { readSave } from "./saves/save-folder.ts";

export interface SampleOptions {
  length: number; // tokens to write
  temperature: number; // 0 always takes the most likely token
  seed: number;
}

export async function sample({
  run = newestRun(),
  prompt,
  bytes,
  temperature,
  seed,
}: SampleArguments): Promise<number> {
  const { data } = readSave(run).manifest.recipe;
  const { tokenizer } = datasets[data.name];
  const model = await loadModelOf(run);
  if (!tokenizer || !continuesText(model))
    throw new OptionsError([`the model of ${run} writes no text; name a run of a language model`]);
  const text = await continueText(model, tokenizer, prompt, { length: bytes, temperature, seed });
  process.stdout.write(`${prompt}${printable(text)}\n`);
  return 0;
}

/** The text that the model writes after `prompt`. The same seed writes the same text. */
export async function continueText(
  model: TextModel,
  tokenizer: Tokenizer,
  prompt: string,
  { length, temperature, seed }: SampleOptions,
): Promise<string> {
  const ids = [...tokenizer.encode(prompt === "" ? "\n" : prompt)];
  const given = ids.length;
  model.eval();
  for (let i = 0; i < length; i++) {
    const window = ids.slice(-model.context);
    const logits = await scope(async () => {
      const tokens = fromTypedArray(BigInt64Array.from(window, BigInt), [1, window.length]);
      const scores = (await noGrad(() => model.nextLogits(tokens)).toTypedArray()) as Float32Array;
      return scores.subarray(0, tokenizer.vocabulary); // a model may have a larger vocabulary than the tokenizer
    });
    ids.push(pick(logits, temperature, uniform(seed, i)));
  }
  model.train();
  return tokenizer.decode(ids.slice(given));
}

/** The i-th number in [0, 1) of a seed. */
function uniform(seed: number, i: number): number {
  return philox([i, 0, 0, 0], wordsOf(seed))[0] / 2 ** 32;
}

/** Draws an index from softmax(logits / temperature); u ∈ [0, 1) is the random number. */
function pick(logits: Float32Array, temperature: number, u: number): number {
  let top = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[top]!) top = i;
  if (temperature === 0) return top;
  const weights = Float64Array.from(logits, (x) => Math.exp((x - logits[top]!) / temperature));
  let left = u * weights.reduce((a, b) => a + b, 0);
  for (let i = 0; i < weights.length; i++) {
    left -= weights[i]!;
    if (left < 0) return i;
  }
  return top;
}
