import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { loraOf } from "@terse/models";
import { scope, type TypedArray } from "@terse/tensor";
import { expect, it } from "vitest";
import { buildModel } from "../build.ts";
import { activationsOf } from "../dry-run/activations.ts";
import { planOf } from "../dry-run/plan.ts";
import { readRecipe } from "../recipe.ts";

const recipes = fileURLToPath(new URL("../../recipes/", import.meta.url));
const recipeOf = (name: string, keys: readonly string[]) => readRecipe(`${recipes}${name}.yaml`, keys);

const lora = ["adapter.name=lora", "adapter.targets=all-linear"];
const cases: readonly (readonly [recipe: string, keys: readonly string[]])[] = [
  // More than the numbers that are drawn at once, and not in whole blocks
  [
    "llama-small",
    [
      "model.width=96",
      "model.heads=3",
      "model.keyValueHeads=3",
      "adapter.modulesToSave=[lm_head]",
      "model.vocabulary=12345",
      "model.tied=false",
    ],
  ],
  ["gpt-small", ["model.layers=2"]],
  ["deit-tiny-cifar", ["model.layers=1"]],
  ["bert-tiny-one-bit-lamb", []],
];

it.each(cases)("a base of %s in bf16 has the values of one in f32, rounded", async (name, keys) => {
  const of = async (base: string) => {
    const model = buildModel(recipeOf(name, [...keys, ...lora, `adapter.base=${base}`]));
    const tensors = loraOf(model)!.baseState();
    const held = tensors.filter(([, { dtype }]) => dtype === "bf16").map(([name]) => name);
    const values = (tensor: (typeof tensors)[number][1]) =>
      scope(() => tensor.detach().to("bf16").to("f32").toTypedArray()) as Promise<TypedArray>;
    return { held, values: new Map(await Promise.all(tensors.map(async ([n, t]) => [n, await values(t)] as const))) };
  };
  const [whole, halved] = [await of("f32"), await of("bf16")];
  expect(whole.held).toEqual([]);
  expect(halved.held.length).toBeGreaterThan(2);
  for (const [name, values] of whole.values) expect(halved.values.get(name), name).toEqual(values);
});

const keysOfRun = ["data.batchSize=2", "data.blockSize=100", "evaluate.every=0", "steps=2", "exchange.dense=f32"];

/** The most memory that a process had which trains two steps, in bytes. */
async function peakOf(keys: readonly string[]): Promise<number> {
  const program = `
import { readFileSync } from "node:fs";
import { loopback } from "@terse/collectives";
import { Arena } from "@terse/tensor";
import { buildData, buildModel, buildOptimizer } from "./src/build.ts";
import { forwardIn } from "./src/precision.ts";
import { readRecipe } from "./src/recipe.ts";
import { takeStep } from "./src/take-step.ts";
const recipe = readRecipe(${JSON.stringify(`${recipes}llama-135m-lora.yaml`)}, ${JSON.stringify(keys)});
const [group] = loopback(1);
const model = buildModel(recipe);
const arena = new Arena(model);
const data = await buildData(recipe, model, group);
const optimizer = await buildOptimizer(recipe, arena, group);
const training = { model, arena, data, optimizer, forward: forwardIn(recipe), accumulate: 1 };
for (let step = 0; step < 2; step++) await takeStep(training, 1e-3);
// That of resourceUsage() begins with the memory of the process that has started this one.
console.log("peak", /VmHWM:\\s+(\\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"))[1]);
process.exit(0);`;
  // A small model fills less of JavaScript's young generation, which would count as memory of the larger one's weights.
  const args = ["--max-semi-space-size=1", "--conditions=@terse/source", "-e", program];
  const cwd = fileURLToPath(new URL("../../", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
  return 1024 * Number(/^peak (\d+)$/m.exec(stdout)![1]);
}

it.each(["f32", "bf16"])(
  "a run with a base in %s takes the memory that a dry run says",
  { timeout: 300_000 },
  async (base) => {
    const keys = [...keysOfRun, `adapter.base=${base}`];
    const small = [...keys, "model.preset=tiny"]; // which is little beside the libraries
    const [libraries, peak] = [await peakOf(small), await peakOf(keys)];
    const said = async (keys: readonly string[]) => {
      const { memory, recipe } = await planOf(recipeOf("llama-135m-lora", keys), 1);
      return Object.values(memory).reduce((sum, bytes) => sum + bytes, (await activationsOf(recipe))!);
    };
    const share = (peak - libraries) / ((await said(keys)) - (await said(small)));
    expect(share).toBeGreaterThan(0.9);
    expect(share).toBeLessThan(1.1);
  },
);
