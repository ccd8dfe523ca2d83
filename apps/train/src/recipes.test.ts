/**
 * Every recipe of apps/train/recipes can be read and dry-run; the small ones, which train on two cores in minutes, take
 * two steps.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Group, loopback, parseLink } from "@terse/collectives";
import type { Model } from "@terse/models";
import { Arena, scope } from "@terse/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildData, buildModel, buildOptimizer } from "./build.ts";
import { activationsOf } from "./dry-run/activations.ts";
import { methodsText, planText } from "./dry-run/dry-run.ts";
import { methodsOf } from "./dry-run/methods.ts";
import { planOf } from "./dry-run/plan.ts";
import { type Recipe, readRecipe } from "./recipe.ts";
import { learningRate, schedules } from "./schedules/schedules.ts";

const folder = new URL("../recipes/", import.meta.url);
const names = readdirSync(folder).sort();
const small = names.filter((name) => /^(gpt|llama)-small/.test(name));
const madeImages = "data={ name: made-images, batchSize: 4 }";
/** The overrides that make a model of images smaller still. */
const ofImages: Record<string, string[]> = {
  "deit-tiny-cifar.yaml": ["model.layers=1", "model.width=48"],
  "resnet18-cifar.yaml": ["model.width=4"],
  "resnet18-cifar-powersgd.yaml": ["model.width=4"],
  "resnet18-cifar-ef-signsgd.yaml": ["model.width=4", "optimizer.lr=0.1"],
  "resnet18-cifar-signum.yaml": ["model.width=4"],
  "resnet50-imagenet-dgc.yaml": ["model.width=4", madeImages],
  "resnet50-imagenet-terngrad.yaml": ["model.width=4", madeImages],
  "resnet50-imagenet-qsgd.yaml": ["model.width=4", madeImages, "optimizer.lr=0.01"],
  "vit-base-imagenet-lion.yaml": ["model.layers=1", "model.width=48", madeImages],
};
/** The overrides that make BERT smaller still. */
const ofMaskedText: Record<string, string[]> = { "bert-tiny-one-bit-lamb.yaml": ["model.layers=1"] };
const read = (name: string, ...overrides: string[]) => readRecipe(new URL(name, folder), overrides);

let text: string;
beforeAll(() => {
  text = mkdtempSync(join(tmpdir(), "terse-recipes-"));
  writeFileSync(join(text, "text"), "the quick brown fox jumps over the lazy dog. ".repeat(200));
});
afterAll(() => rmSync(text, { recursive: true, force: true }));

describe.each(names)("%s", (name) => {
  it("says in its first line what it is, with its paper where it is of one", () => {
    const source = readFileSync(new URL(name, folder), "utf8");
    expect(source).toMatch(/^# [A-Z0-9]/);
    if (!["gpt-small.yaml", "gpt-small-adamw.yaml"].includes(name)) expect(source).toMatch(/^(# .*\n)*# .*https:/);
  });

  it("can be planned on 1 and on 64 ranks", async () => {
    for (const ranks of [1, 64]) {
      const speed = { flops: 1e13, measured: false };
      const plan = await planOf(read(name), ranks, { link: parseLink("10gbit,50us"), speed });
      expect(plan.parameters).toBeGreaterThan(
        name in ofImages ? 6e5 : name in ofMaskedText ? 4e5 : small.includes(name) ? 3.8e6 : 1.2e8,
      );
      expect(plan.phases.reduce((sum, { steps }) => sum + steps, 0)).toBe(plan.recipe.steps);
      for (const { bytes, time } of plan.phases) {
        expect(bytes === 0 || ranks > 1).toBe(true);
        expect(time!.computing).toBeGreaterThan(0);
        expect(time!.exposed).toBeLessThanOrEqual(time!.messages);
      }
    }
  });
});

describe.each(small)("%s", (name) => {
  it("takes two steps on two ranks, with a smaller model, and both end with the same parameters", async () => {
    const preset = name.startsWith("llama") ? "tiny" : "nano";
    const recipe = read(name, `model.preset=${preset}`, `data.path=${JSON.stringify(text)}`, "compareEvery=1");
    const groups = loopback(2);
    const losses = await Promise.all(groups.map((group) => train(recipe, group, 2)));
    await Promise.all(groups.map((group) => group.close()));
    for (const loss of losses.flat()) expect(loss).toBeCloseTo(Math.log(256), 0);
  });
});

it.each(Object.entries(ofImages))("%s takes two steps on two ranks, with a smaller model", async (name, smaller) => {
  const recipe = read(name, ...smaller, "data.batchSize=4", "compareEvery=1");
  const groups = loopback(2);
  const losses = await Promise.all(groups.map((group) => train(recipe, group, 2)));
  await Promise.all(groups.map((group) => group.close()));
  for (const loss of losses.flat()) expect(Math.abs(loss - Math.log(10))).toBeLessThan(1); // 10 classes
});

it.each(Object.entries(ofMaskedText))(
  "%s takes two steps on two ranks, with a smaller model",
  async (name, smaller) => {
    const recipe = read(name, ...smaller, `data.path=${JSON.stringify(text)}`, "compareEvery=1");
    const groups = loopback(2);
    const losses = await Promise.all(groups.map((group) => train(recipe, group, 2)));
    await Promise.all(groups.map((group) => group.close()));
    // A token, and one of two.
    for (const loss of losses.flat()) expect(Math.abs(loss - Math.log(320) - Math.log(2))).toBeLessThan(1);
  },
);

it("every one has data that is there, or says in a line how to name what it needs", async () => {
  const [group] = loopback(1);
  const needy: string[] = [];
  for (const name of names) {
    const recipe = read(name);
    if (!("path" in recipe.data) || recipe.data.path === undefined) continue; // what needs no path is tried above
    needy.push(name);
    const problem = await buildData(recipe, { context: 128 } as Model, group!).then(
      () => "",
      (error: Error) => error.message,
    );
    expect(problem, name).toMatch(/^[^\n]* --data (PATH|FOLDER)\b[^\n]*$/);
  }
  await group!.close();
  expect(needy.filter((name) => small.includes(name) || name in ofMaskedText)).toEqual([]);
});

/** The recipe of each method's paper at its scale, and what it is about. */
const ofPapers: Record<string, readonly [recipe: string, settings: object]> = {
  signum: ["resnet18-cifar-signum", { optimizer: { lr: 16 * 5e-5, beta: 0.9, weightDecay: 1e-4 } }],
  lion: [
    "vit-base-imagenet-lion",
    { optimizer: { lr: 1e-4, beta2: 0.99, weightDecay: 10 }, data: { batchSize: 4096 / 64 }, steps: 300 * 313 },
  ],
  lamb: ["bert-large-lamb", { optimizer: { lr: 3.54e-3, maxRatio: 1 }, steps: 28_125, schedule: { warmup: 2812 } }],
  "one-bit-adam": ["bert-large-one-bit-adam", { optimizer: { lr: 2e-4, warmup: 4000, scale: "fused" } }],
  "one-bit-lamb": [
    "bert-large-one-bit-lamb",
    { optimizer: { lr: 12e-3, beta3: 0.9, warmup: 1000, threshold: 0.1 }, steps: 5993 },
  ],
  "distributed-lion": ["gpt-350m-distributed-lion", { optimizer: { vote: "majority", lr: 6e-5, weightDecay: 1 } }],
  "lion-cub": ["gpt-124m-lion-cub", { optimizer: { lr: 6e-5, weightDecay: 1, clip: 1 }, data: { batchSize: 12 } }],
  muon: ["gpt-120m-muon", { optimizer: { lr: 0.02, momentum: 0.95, weightDecay: 0 } }],
  dion: ["gpt-120m-dion", { optimizer: { lr: 0.02, momentum: 0.95, rank: 768 / 4 } }],
  "zero-one-adam": ["bert-large-zero-one-adam", { optimizer: { lr: 1e-3, kappa: 16, doubling: 1000, localSteps: 16 } }],
  demo: ["gpt-120m-demo", { optimizer: { chunk: 64, k: 32, decay: 0.999 } }],
  "ef-signsgd": ["resnet18-cifar-ef-signsgd", { optimizer: { name: "sgd", lr: 16 * 0.1, momentum: 0.9 } }],
  qsgd: [
    "resnet50-imagenet-qsgd",
    { exchange: { gradient: { bits: 4, bucket: 512 } }, optimizer: { name: "sgd", lr: 0.1, momentum: 0.9 } },
  ],
  terngrad: [
    "resnet50-imagenet-terngrad",
    { exchange: { gradient: { clip: 2.5 } }, optimizer: { name: "sgd", lr: 0.04, weightDecay: 5e-4 }, steps: 92_500 },
  ],
  graddrop: [
    "gpt-124m-graddrop",
    {
      exchange: { gradient: { ratio: 0.01, threshold: "model" } },
      optimizer: { name: "adamw", lr: 1e-4 },
      data: { batchSize: 80 },
    },
  ],
  dgc: [
    "resnet50-imagenet-dgc",
    { exchange: { gradient: { ratio: 0.001, momentum: 0.9 } }, optimizer: { lr: 32 * 0.0125, momentum: 0 } },
  ],
  powersgd: [
    "resnet18-cifar-powersgd",
    { exchange: { gradient: { matrixApproximationRank: 2 } }, optimizer: { lr: 16 * 0.1, weightDecay: 1e-4 } },
  ],
};

describe("the paper of every method", () => {
  it.each(Object.entries(ofPapers))("has its settings there: %s", (method, [name, settings]) => {
    const recipe = read(`${name}.yaml`);
    expect(recipe.exchange.gradient?.name ?? recipe.optimizer.name).toBe(method);
    expect(recipe).toMatchObject(settings);
  });
});

describe("docs/recipes.md", () => {
  const page = readFileSync(new URL("../../../docs/recipes.md", import.meta.url), "utf8");

  it("names every recipe and every schedule", () => {
    for (const name of names) expect(page).toContain(`/recipes/${name})`);
    for (const name of Object.keys(schedules)) expect(page).toContain(`| \`${name}\` |`);
  });

  it("shows what a dry run prints", async () => {
    const given = { link: parseLink("10gbit,50us"), speed: { flops: 50e12, measured: false } };
    const plan = await planOf(read("bert-large-one-bit-lamb.yaml"), 64, given);
    const activations = 1e9 * Number(/^ {2}activations +about ([\d.]+) GB$/m.exec(page)![1]);
    expect((await activationsOf(plan.recipe))! / activations).toBeCloseTo(1, 1); // processors differ
    const text = [
      ...planText(plan, 64, { on: ", a link of 10gbit,50us each", activations }),
      ...methodsText(await methodsOf(plan, 64, 2), activations),
    ];
    expect(page).toContain(`\n${text.join("\n")}\n`);
  });
});

async function train(recipe: Recipe, group: Group, steps: number): Promise<number[]> {
  const model = buildModel(recipe);
  const arena = new Arena(model);
  await using data = await buildData(recipe, model, group);
  await using optimizer = await buildOptimizer(recipe, arena, group);
  const losses: number[] = [];
  for (let step = 0; step < steps; step++)
    await scope(async () => {
      arena.zeroGradients();
      const lr = learningRate(step, { ...recipe.schedule, steps: recipe.steps, lr: recipe.optimizer.lr });
      const [batch] = await data.next();
      const loss = model.loss(batch!);
      losses.push(loss.item());
      await optimizer.begin({ lr, loss: loss.item() });
      await loss.backward();
      await optimizer.step({ lr });
    });
  return losses;
}
