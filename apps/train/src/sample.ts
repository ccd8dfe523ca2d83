/** `./terse sample RUN`: the model of a run continues a text, byte by byte. */
import { philox, wordsOf } from "@terse/codecs";
import { byteTokenizer } from "@terse/data";
import type { Gpt } from "@terse/models";
import { fromTypedArray, noGrad, scope } from "@terse/tensor";
import type { SampleArguments } from "./arguments.ts";
import { printable } from "./format.ts";
import { loadModelOf, newestRun } from "./run.ts";

export interface SampleOptions {
  bytes: number; // how many
  temperature: number; // 0: the likeliest byte every time
  seed: number;
}

export async function sample(args: SampleArguments): Promise<number> {
  const model = await loadModelOf(args.run ?? newestRun());
  process.stdout.write(`${args.prompt}${printable(await continueText(model, args.prompt, args))}\n`);
  return 0;
}

/** What the model writes after `prompt`. The same seed writes the same text. */
export async function continueText(model: Gpt, prompt: string, options: SampleOptions): Promise<string> {
  const ids = [...byteTokenizer.encode(prompt === "" ? "\n" : prompt)];
  const given = ids.length;
  model.eval();
  for (let i = 0; i < options.bytes; i++) {
    const window = ids.slice(-model.shape.context);
    const logits = await scope(async () => {
      const tokens = fromTypedArray(BigInt64Array.from(window, BigInt), [1, window.length]);
      const last = noGrad(() =>
        model
          .forward(tokens)
          .select(1, window.length - 1)
          .flatten(),
      );
      const scores = (await last.toTypedArray()) as Float32Array;
      return scores.subarray(0, byteTokenizer.vocabulary); // a larger vocabulary has nothing to say beyond bytes
    });
    ids.push(pick(logits, options.temperature, uniform(options.seed, i)));
  }
  model.train();
  return byteTokenizer.decode(Uint8Array.from(ids.slice(given)));
}

/** The i-th number in [0, 1) of a seed. */
function uniform(seed: number, i: number): number {
  return philox([i, 0, 0, 0], wordsOf(seed))[0] / 2 ** 32;
}

/** The index that u ∈ [0, 1) falls on under softmax(logits / temperature). */
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
