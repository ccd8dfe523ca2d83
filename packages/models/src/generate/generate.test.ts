import { fromTypedArray, manualSeed, memory, noGrad, scope } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { Gpt } from "../gpt/gpt.ts";
import { Gpt2 } from "../gpt2/gpt2.ts";
import { Llama } from "../llama/llama.ts";
import type { TextModel } from "../model.ts";
import { generate } from "./generate.ts";

const shape = { vocabulary: 61, context: 24, width: 48, heads: 4, layers: 2, tied: true };
const families: [string, () => TextModel][] = [
  ["gpt", () => new Gpt(shape)],
  ["gpt2", () => new Gpt2({ ...shape, dropout: 0.2 })],
  ["llama", () => new Llama({ ...shape, heads: 6, keyValueHeads: 2, hidden: 64 })],
  ["llama with a window", () => new Llama({ ...shape, architecture: "mistral", hidden: 64, window: 5 })],
];

/** A model with random weights that are large enough to make some tokens much more likely than others. */
function withLargeWeights(create: () => TextModel): TextModel {
  manualSeed(4);
  const model = create();
  noGrad(() => {
    for (const parameter of model.parameters()) if (parameter.shape.length > 1) parameter.mul_(8);
  });
  return model;
}
const random = (i: number) => ((i + 1) * 0.6180339887) % 1;

describe.each(families)("generate, of %s", (_, create) => {
  it.each([{ temperature: 0 }, { temperature: 1 }, { temperature: 0.9, topK: 10, topP: 0.9 }])(
    "writes the same tokens with and without cache, also beyond the context: %o",
    async (sampling) => {
      const model = withLargeWeights(create);
      const [with_, without] = [
        await generate(model, [3, 1, 4], { length: 40, random, ...sampling }),
        await generate(model, [3, 1, 4], { length: 40, random, cached: false, ...sampling }),
      ];
      expect(with_).toEqual(without);
      expect(with_.length).toBe(40);
      expect(new Set(with_).size).toBeGreaterThan(1);
    },
  );

  it("gives a prompt in parts the logits of the whole", () => {
    const model = withLargeWeights(create).eval();
    const tokens = fromTypedArray(
      BigInt64Array.from({ length: 12 }, (_, i) => BigInt((i * 7) % 61)),
      [1, 12],
    );
    const caches = model.createCaches();
    scope(() =>
      noGrad(() => {
        const whole = model.nextLogits(tokens);
        for (const [begin, length] of [
          [0, 5],
          [5, 1],
          [6, 6],
        ] as const) {
          const logits = model.nextLogits(tokens.narrow(1, begin, length), caches);
          if (begin + length === 12) expect(logits.allclose(whole, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
        }
        expect(caches.map(({ length }) => length)).toEqual([12, 12]);
      }),
    );
    for (const cache of caches) cache[Symbol.dispose]();
  });

  it("stops where what it writes ends as is asked, and leaves that out", async () => {
    const model = withLargeWeights(create);
    const write = (ends: readonly (readonly number[])[]) =>
      generate(model, [3, 1, 4], { length: 12, temperature: 1, random, ends });
    const all = await write([]);
    const end = all.slice(4, 6);
    const first = all.findIndex((id, i) => id === end[0] && all[i + 1] === end[1]);
    expect(await write([[-1], end])).toEqual(all.slice(0, first));
    expect(await write([[-1]])).toEqual(all);
    expect(await write([[]])).toEqual(all);
  });

  it("leaves the model in its mode and frees what it used, and writes no token of a smaller vocabulary", async () => {
    const model = withLargeWeights(create);
    const before = memory();
    const written = await generate(model, [1], { length: 30, random, vocabulary: 7 });
    expect(memory()).toEqual(before);
    expect(model.training).toBe(true);
    expect(Math.max(...written)).toBeLessThan(7);
    await expect(generate(model, [], { length: 1, random })).rejects.toThrow(/the prompt is empty/);
  });

  it.each<[string, unknown, RegExp]>([
    [
      "transformers' name of an option",
      { length: 1, random, top_k: 4 },
      /generate\.top_k: unknown option; did you mean topK\?/,
    ],
    ["no options", undefined, /generate\.length: /],
    ["no random numbers", { length: 1 }, /generate\.random: missing/],
    [
      "a temperature below 0",
      { length: 1, random, temperature: -1 },
      /generate\.temperature: expected a number ≥ 0, got -1/,
    ],
  ])("refuses %s", async (_, options, message) => {
    await expect(generate(create(), [1], options as never)).rejects.toThrow(message);
  });
});
