/** Runs that begin with the weights of a model for other classes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { ResNet } from "@terse/models";
import { Arena } from "@terse/tensor";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readArguments } from "../arguments.ts";
import { buildData, buildModel, buildOptimizer } from "../build.ts";
import { readRecipe } from "../recipe.ts";
import { openRun } from "./open-run.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-new-head-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const plain = readRecipe("resnet18-cifar", ["model.width=4", "data.name=made-images", "steps=4"]);

/** Begins a run on two ranks; resolves to the model's tensors on each, and to what the user is told. */
async function begin(newHead: boolean, out: string, recipe = plain) {
  const groups = loopback(2);
  const args = { initFrom: join(folder, "weights"), ...(newHead && { newHead: true as const }), out, overrides: [] };
  try {
    return await Promise.all(
      groups.map(async (group) => {
        await using run = await openRun(recipe, group, args);
        const model = buildModel(recipe);
        const data = await buildData(recipe, model, group);
        await using optimizer = await buildOptimizer(recipe, new Arena(model), group);
        await run.begin({ model, data, optimizer });
        const tensors = model.stateDict().map(async ([name, tensor]) => [name, await tensor.toTypedArray()] as const);
        return { tensors: new Map(await Promise.all(tensors)), notes: run.notes };
      }),
    );
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

const published = new ResNet({ stem: "cifar", width: 4, classes: 1000 });
beforeAll(() => saveModel(join(folder, "weights"), published.stateDict(), published.config));

it("take all but the head, on every rank alike, only when asked, and say what is new", async () => {
  await expect(begin(false, join(folder, "refused"))).rejects.toThrow(
    /have another head: fc\.weight is \(1000, 32\) in the file and .*\. With --new-head the others are loaded/,
  );
  const [first, second] = await begin(true, join(folder, "run"));
  expect(first!.notes).toContain("new, with random values: fc.weight (10, 32), fc.bias (10)");
  expect(second!.tensors).toEqual(first!.tensors);
  for (const [name, tensor] of published.stateDict())
    if (!name.startsWith("fc.")) expect(first!.tensors.get(name), name).toEqual(await tensor.toTypedArray());
  expect(() => readArguments(["train", "--new-head"])).toThrow(/--new-head: is for --init-from/);
});

it("refuse a new head that an adapter would leave as it is drawn, and train it where it is named", async () => {
  const keys = ["model.width=4", "data.name=made-images", "steps=4", "adapter.name=lora", "adapter.targets=[conv1]"];
  await expect(begin(true, join(folder, "frozen"), readRecipe("resnet18-cifar", keys))).rejects.toThrow(
    /^--new-head: the head begins with random values, .* train it: --adapter\.modulesToSave='\[fc\]'$/,
  );
  await begin(true, join(folder, "trained"), readRecipe("resnet18-cifar", [...keys, "adapter.modulesToSave=[fc]"]));
});
