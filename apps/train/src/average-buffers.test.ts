import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModel, saveModel } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { ResNet } from "@terse/models";
import { manualSeed, noGrad, randint, randn, scope } from "@terse/tensor";
import { afterAll, describe, expect, it } from "vitest";
import { averageBuffers } from "./average-buffers.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-buffers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const create = () => new ResNet({ stem: "cifar", width: 4, classes: 3 });
const bufferNames = create()
  .namedBuffers()
  .map(([name]) => name);
const bufferValues = async (model: ResNet) =>
  Promise.all(model.namedBuffers().map(async ([, buffer]) => Array.from(await buffer.toTypedArray(), Number)));

describe("the mean of the ranks' running statistics", () => {
  it.each([2, 3])("is the same on %i ranks, which then measure the same, also after a save", async (ranks) => {
    manualSeed(1);
    const images = Array.from({ length: ranks }, (_, rank) => randn([4, 3, 8, 8]).mul(rank + 1));
    const [validation, labels] = [randn([4, 3, 8, 8]), randint(0, 3, [4])];
    const groups = loopback(ranks);
    const models = groups.map(() => {
      manualSeed(2);
      return create();
    });
    for (const [rank, model] of models.entries()) // rank 1 has seen a batch more
      for (let i = 0; i < (rank === 1 ? 2 : 1); i++) scope(() => noGrad(() => model.forward(images[rank]!)));
    const before = await Promise.all(models.map(bufferValues));
    const average = () => Promise.all(models.map((model, rank) => averageBuffers(model, groups[rank]!)));
    await average();
    const after = await Promise.all(models.map(bufferValues));
    for (const [i, name] of bufferNames.entries()) {
      const own = before.map((buffers) => buffers[i]!);
      const expected = own[0]!.map((first, j) =>
        name.endsWith("num_batches_tracked")
          ? first
          : Math.fround(own.reduce((sum, values) => sum + values[j]!, 0) / ranks),
      );
      for (const buffers of after) expect(buffers[i], name).toEqual(expected);
    }
    expect(before[0]).not.toEqual(after[0]);
    await average();
    expect(await Promise.all(models.map(bufferValues))).toEqual(after); // what is the same stays as it is

    const path = join(folder, String(ranks));
    await saveModel(path, models[0]!.stateDict(), models[0]!.config);
    const resumed = create();
    await loadModel(path, resumed.stateDict(), resumed);
    const losses = [...models, resumed].map((model) =>
      scope(() => noGrad(() => model.eval().metrics({ images: validation, labels }).loss.item())),
    );
    expect(new Set(losses).size).toBe(1);
    await Promise.all(groups.map((group) => group.close()));
  });
});
