import { fromTypedArray } from "@terse/tensor";
import { beforeAll, describe, expect, it } from "vitest";
import { needsModules, runPython } from "../../../tensor/src/testing/python.ts";
import { pickToken, type Sampling } from "./pick-token.ts";

/** Counts of each index over evenly spaced random numbers. */
function counts(logits: Float32Array, sampling: Sampling, draws = 4000): number[] {
  const found = new Array<number>(logits.length).fill(0);
  for (let i = 0; i < draws; i++) found[pickToken(logits, sampling, (i + 0.5) / draws)]!++;
  return found;
}

const logits = Float32Array.from({ length: 40 }, (_, i) => 3 * Math.sin(i * i));
const choices: Sampling[] = [
  {},
  { temperature: 0.5 },
  { topK: 5 },
  { topP: 0.6 },
  { temperature: 2, topK: 20, topP: 0.8 },
  { temperature: 0.7, topP: 0.05 },
];
const missing = needsModules("transformers");

describe("pickToken", () => {
  it("takes the most likely token at temperature 0, and the first of equals", () => {
    expect(pickToken(Float32Array.of(1, 3, 3, 2), { temperature: 0 }, 0.99)).toBe(1);
  });

  it("keeps all tokens that are as likely as the k-th", () => {
    const found = counts(Float32Array.of(0, 2, 1, 1, -1), { topK: 2 });
    expect(found.map((count) => count > 0)).toEqual([false, true, true, true, false]);
  });

  it("always keeps one token", () => {
    expect(counts(Float32Array.of(0, 2, 1), { topP: 1e-9 })).toEqual([0, 4000, 0]);
    expect(counts(Float32Array.of(0, 2, 1), { topK: 1 })).toEqual([0, 4000, 0]);
  });

  it("leaves the choice as it is where top-k and top-p keep all", () => {
    for (const u of [0, 0.3, 0.7, 0.999])
      expect(pickToken(logits, { topK: 100, topP: 1 }, u)).toBe(pickToken(logits, {}, u));
  });

  describe.skipIf(missing !== "")(`beside transformers${missing}`, () => {
    beforeAll(async () => {
      await runPython("import transformers.generation.logits_process"); // takes a moment
    });

    it.each(choices)("draws with the probabilities of its temperature, top-k and top-p: %o", async (sampling) => {
      const { temperature = 1, topK = 0, topP = 1 } = sampling;
      const { probabilities } = await runPython(
        `
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper
x = inputs["logits"]
if ${temperature} != 1: x = TemperatureLogitsWarper(${temperature.toFixed(3)})(None, x)
if ${topK} > 0: x = TopKLogitsWarper(${topK})(None, x)
if ${topP} < 1: x = TopPLogitsWarper(${topP})(None, x)
outputs["probabilities"] = x.softmax(-1)`,
        { logits: fromTypedArray(logits, [1, logits.length]) },
      );
      const draws = 4000;
      const expected = Array.from((await probabilities!.toTypedArray()) as Float32Array, (p) => p * draws);
      // Evenly spaced numbers: exact to one draw.
      for (const [i, count] of counts(logits, sampling, draws).entries())
        expect(Math.abs(count - expected[i]!), `token ${i}`).toBeLessThanOrEqual(1.01);
    });
  });
});
