import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModel, saveModel } from "@terse/checkpoint";
import { manualSeed, type Tensor } from "@terse/tensor";
import { afterAll, expect, it } from "vitest";
import { Gpt, gptPresets, type Model, ResNet, Vit } from "./index.ts";
import { headOf, withNewHead } from "./new-head.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-new-head-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const vit = { patchSize: 4, width: 16, heads: 2, layers: 1, distilled: true };
const cases: readonly [string, (classes: number) => Model, head: string, grown: (classes: number) => Model][] = [
  [
    "resnet",
    (classes) => new ResNet({ width: 4, classes }),
    "fc.weight (10, 32), fc.bias (10)",
    (classes) => new ResNet({ width: 8, classes }),
  ],
  [
    "vit",
    (classes) => new Vit({ ...vit, imageSize: classes === 10 ? 16 : 8, classes }),
    "head.weight (10, 16), head.bias (10), head_dist.weight (10, 16), head_dist.bias (10)",
    (classes) => new Vit({ ...vit, imageSize: 8, width: 32, classes }),
  ],
];

it.each(cases)(
  "a %s takes all weights of one with 1000 classes but the head, when asked",
  async (name, create, head, grown) => {
    manualSeed(1);
    const [published, model] = [create(1000), create(10)];
    const path = join(folder, name);
    await saveModel(path, published.stateDict(), { ...published.config });
    const copies = (from: Model) => new Map(from.stateDict().map(([each, tensor]) => [each, tensor.clone()]));
    const before = copies(model);
    await expect(loadModel(path, model.stateDict(), model)).rejects.toThrow(/is \(1000, \d+\) in the file and \(10, /);
    await loadModel(path, model.stateDict(), withNewHead(model));
    expect(headOf(model)).toBe(head);
    const stored = new Map<string, Tensor>(published.stateDict());
    for (const [each, tensor] of model.stateDict()) {
      const from = head.includes(`${each} `) ? before.get(each)! : stored.get(each)!;
      if (each === "pos_embed") expect(tensor.equal(model.adapted!(each, from))).toBe(true);
      else expect(tensor.equal(from), each).toBe(true);
    }
    const other = grown(10);
    await expect(loadModel(path, other.stateDict(), withNewHead(other))).rejects.toThrow(/does not fit this model/);
  },
);

it("a model whose embedding is its head is refused", () => {
  expect(() => withNewHead(new Gpt(gptPresets.nano))).toThrow(/--new-head: this model has no head of its own/);
});
