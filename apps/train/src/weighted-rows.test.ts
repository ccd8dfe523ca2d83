/** Rows that predict different numbers of tokens: the mean is over the tokens of all ranks and micro-batches. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loopback } from "@terse/collectives";
import { type Dataset, datasets, type TextBatch } from "@terse/data";
import { Gpt, gptPresets } from "@terse/models";
import type { TrainingOptimizer } from "@terse/optimizers";
import { Arena, manualSeed, noGrad, scope, type Tensor } from "@terse/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { evaluate } from "./evaluate.ts";
import { inF32 } from "./precision.ts";
import { takeStep } from "./take-step.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-weights-"));
const path = join(folder, "rows.jsonl");
beforeAll(() => {
  const rows = [1, 2, 3, 30, 5, 11, 2, 8].map((n) => ({
    prompt: "count:",
    completion: "1234567".repeat(9).slice(0, n),
  }));
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const open = (rank: number, ranks: number, batchSize: number, more: object = {}): Promise<Dataset> =>
  datasets.chat.open(
    { path, tokenizer: "bytes", loss: "answers", packing: "none", blockSize: 64, validationFraction: 0, ...more },
    { batchSize, seed: 1, rank, ranks },
  );

const create = () => {
  manualSeed(3);
  return new Gpt(gptPresets.nano);
};

/** The gradient that ranks would average, and the loss that they would report. */
async function stepOn(ranks: number, batchSize: number, accumulate: number) {
  const [gradients, losses]: [Tensor[], number[]] = [[], []];
  for (let rank = 0; rank < ranks; rank++) {
    const model = create();
    const arena = new Arena(model);
    await using data = await open(rank, ranks, batchSize);
    const optimizer = { begin: async () => {}, step: async () => ({}) } as unknown as TrainingOptimizer;
    const { loss } = await takeStep({ model, arena, data, optimizer, forward: inF32, accumulate }, 0);
    losses.push(loss);
    gradients.push(model.embedding.weight.grad!.clone());
  }
  const mean = gradients.reduce((sum, each) => sum.add(each)).div(ranks);
  return { gradient: mean, loss: losses.reduce((sum, each) => sum + each, 0) / ranks };
}

describe("rows of different numbers of answers' tokens", () => {
  it("give the gradient and loss of a mean over all tokens, on any number of ranks and micro-batches", async () => {
    const model = create();
    await using data = await open(0, 1, 8);
    const [batch] = (await data.next()) as [TextBatch];
    const loss = model.loss(batch); // PyTorch's mean over every token that is not ignored
    await loss.backward();
    const expected = model.embedding.weight.grad!;
    for (const [ranks, batchSize, accumulate] of [
      [1, 8, 1],
      [1, 2, 4],
      [2, 4, 1],
      [2, 1, 4],
      [4, 1, 2],
    ] as const) {
      const { gradient, loss: mean } = await stepOn(ranks, batchSize, accumulate);
      expect(gradient.allclose(expected, { rtol: 1e-4, atol: 1e-7 }), `${ranks} ranks`).toBe(true);
      expect(mean).toBeCloseTo(loss.item(), 5);
    }
  });

  it("are validated by a mean over all tokens, on any number of ranks and with any batch size", async () => {
    const model = create();
    await using all = await open(0, 1, 8, { validationFraction: 0.5 });
    let expected = 0;
    for await (const batch of all.validation({ windows: 8, sharded: false }))
      expected = scope(() =>
        noGrad(() =>
          model
            .eval()
            .loss(batch as TextBatch)
            .item(),
        ),
      );
    for (const [ranks, batchSize] of [
      [1, 1],
      [2, 1],
      [3, 2],
    ] as const) {
      const groups = loopback(ranks);
      const found = await Promise.all(
        groups.map(async (group, rank) => {
          await using data = await open(rank, ranks, batchSize, { validationFraction: 0.5 });
          return evaluate(create(), data, 8, group);
        }),
      );
      for (const { loss } of found) expect(loss).toBeCloseTo(expected, 5);
      await Promise.all(groups.map((group) => group.close()));
    }
  });
});
