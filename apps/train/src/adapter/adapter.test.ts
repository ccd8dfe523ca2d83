/** Runs that train an adapter: where they begin, what they save, and how they go on. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSafetensors, saveModel, writeSafetensors } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { Llama, type LlamaOptions, loraOf, restoreModel } from "@terse/models";
import { Arena, manualSeed } from "@terse/tensor";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { buildData, buildModel, buildOptimizer } from "../build.ts";
import { exportCommand } from "../commands/export.ts";
import { forwardIn } from "../precision.ts";
import { readRecipe } from "../recipe.ts";
import { recipeFor } from "../recipe-for.ts";
import { readInitialWeights } from "../saves/initial-weights.ts";
import { loadModelOf } from "../saves/model-of-run.ts";
import { openRun } from "../saves/open-run.ts";
import { seedOfRank } from "../seed-of-rank.ts";
import { takeStep } from "../take-step.ts";
import { WeightAverage } from "../weight-average.ts";
import { foundTokenizer } from "./base.ts";

let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "terse-adapter-"));
  writeFileSync(join(folder, "text"), "the quick brown fox jumps over the lazy dog. ".repeat(200));
  await writeBase("base");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const shape: LlamaOptions = {
  vocabulary: 256,
  context: 32,
  width: 32,
  heads: 4,
  layers: 2,
  keyValueHeads: 2,
  hidden: 48,
};

async function writeBase(name: string, changed: Partial<LlamaOptions> = {}, seed = 99): Promise<void> {
  manualSeed(seed);
  const model = new Llama({ ...shape, tied: false, ...changed });
  await saveModel(join(folder, name), model.stateDict(), { model_type: "llama", ...model.config });
}

interface Begun {
  readonly ranks?: number;
  readonly to: number; // steps
  readonly keys?: readonly string[];
  readonly from?: string | undefined; // --init-from
  readonly base?: string; // --base
  readonly out?: string;
  readonly resume?: boolean;
}

/** Trains, saves and ends. Resolves to each rank's trained values. */
async function run({ ranks = 1, to, keys = [], from = "base", base, out = "run", resume }: Begun): Promise<number[][]> {
  const text = [`data.path=${JSON.stringify(join(folder, "text"))}`, "evaluate.every=0", "logEvery=1"];
  const overrides = resume ? [...keys] : [...text, "adapter.name=lora", "optimizer.lr=0.01", "steps=8", ...keys];
  const moved = base === undefined ? undefined : join(folder, base);
  const initFrom = resume || from === "" ? undefined : join(folder, from);
  const weights = initFrom === undefined ? undefined : await readInitialWeights(initFrom, moved);
  const given = { recipe: initFrom === undefined ? "llama-small" : "fine-tune", overrides };
  const recipe = resume ? undefined : recipeFor(given, weights);
  mkdirSync(join(folder, out), { recursive: true });
  const args = resume
    ? { resume: join(folder, out), overrides, base: moved }
    : { ...given, initFrom, weights, out: join(folder, out), base: moved };
  const groups = loopback(ranks);
  try {
    return await Promise.all(
      groups.map(async (group) => {
        await using run = await openRun(recipe, group, args);
        const model = buildModel(run.recipe);
        const arena = new Arena(model);
        const data = await buildData(run.recipe, model, group);
        await using optimizer = await buildOptimizer(run.recipe, arena, group);
        using average = run.recipe.average && new WeightAverage(arena, run.recipe.average);
        manualSeed(seedOfRank(run.recipe.seed, group.rank, run.step));
        await run.begin({ model, data, optimizer, average });
        const training = { model, arena, data, optimizer, forward: forwardIn(run.recipe), accumulate: 1 };
        for (let step = run.step; step < to; step++) {
          await takeStep(training, run.recipe.optimizer.lr);
          average?.update(step);
        }
        await optimizer.compare();
        expect(await run.save(to)).toBeUndefined();
        return [...((await arena.parameters.toTypedArray()) as Float32Array)];
      }),
    );
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

const failure = async (given: Begun): Promise<string> =>
  run(given).then(
    () => expect.unreachable(),
    (error: Error) => error.message,
  );
const values = async (path: string) => {
  const model = await loadModelOf(join(folder, path));
  return Promise.all(
    loraOf(model)!
      .parameters()
      .map(async ([, p]) => [...((await p.toTypedArray()) as Float32Array)]),
  );
};

describe("a run with an adapter", () => {
  it("trains the adapter alone, and saves it without its base", async () => {
    const [one, two] = await run({ ranks: 2, to: 3 });
    expect(one).toEqual(two);
    const save = join(folder, "run", "step-3");
    expect(readdirSync(save).sort()).toEqual([
      "adapter_config.json",
      "adapter_model.safetensors",
      "config.json",
      "manifest.json",
      "state-rank-0.safetensors",
      "state-rank-1.safetensors",
    ]);
    const tensors = await readSafetensors(join(save, "adapter_model.safetensors"));
    expect([...tensors.keys()].sort()).toEqual(
      [0, 1].flatMap((layer) =>
        ["q_proj.lora_A", "q_proj.lora_B", "v_proj.lora_A", "v_proj.lora_B"].map(
          (name) => `base_model.model.model.layers.${layer}.self_attn.${name}.weight`,
        ),
      ),
    );
    const state = await readSafetensors(join(save, "state-rank-0.safetensors"));
    const count = [...tensors.values()].reduce((sum, { data }) => sum + data.length, 0);
    for (const [name, { data }] of state) expect(data.length, name).toBeLessThanOrEqual(count + 64 * 8);
  });

  const cases: string[][] = [
    [],
    ["optimizer.name=lion-cub", "optimizer.noDecay=[]"],
    ["optimizer.name=muon"],
    ["exchange.gradient.name=powersgd"],
    ["adapter.dropout=0.2"],
    ["adapter.base=bf16", "precision=bf16", "activationCheckpointing=true"],
    ["adapter.targets=all-linear", "average.decay=0.5"],
    ["local.syncEvery=2"],
  ];
  it("is not exported where a tensor of its file is missing or unexpected, and is copied where its base is not there", async () => {
    await run({ to: 1 });
    const [from, file] = [join(folder, "run", "step-1"), "adapter_model.safetensors"];
    cpSync(from, join(folder, "adapter"), { recursive: true });
    rmSync(join(folder, "adapter", "manifest.json"));
    const path = join(folder, "adapter", file);
    const tensors = await readSafetensors(path);
    const name = "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight";
    const renamed = [...tensors].map(([each, tensor]) => [each === name ? "other" : each, tensor] as const);
    await writeSafetensors(path, renamed);
    const out = join(folder, "exported");
    const both = new RegExp(`adapter_model\\.safetensors does not fit .*missing ${name}; unexpected other`);
    await expect(exportCommand([join(folder, "adapter"), "--out", out])).rejects.toThrow(both);
    expect(existsSync(out)).toBe(false);
    rmSync(join(folder, "adapter", "config.json"));
    await expect(exportCommand([join(folder, "adapter"), "--out", out])).rejects.toThrow(both); // by its base's config
    renameSync(join(folder, "base"), join(folder, "moved"));
    vi.spyOn(process.stdout, "write").mockReturnValue(true);
    await exportCommand([join(folder, "adapter"), "--out", out]);
    vi.restoreAllMocks();
    expect(readdirSync(out).sort()).toEqual(["adapter_config.json", file]);
  });

  it.each(cases.map((keys) => [keys]))("goes on as if it had not been cut off: %s", async (keys) => {
    const ranks = keys.includes("adapter.dropout=0.2") ? 1 : 2; // ranks of one process share random numbers
    const whole = await run({ ranks, to: 6, keys, out: "whole" });
    await run({ ranks, to: 4, keys });
    expect(await run({ ranks, to: 6, resume: true })).toEqual(whole);
    expect(await values("run")).toEqual(await values("whole"));
    if (keys.includes("average.decay=0.5")) expect(await values("run/average")).toEqual(await values("whole/average"));
  });

  it("goes on with other numbers of ranks", async () => {
    await run({ ranks: 2, to: 2 });
    const [a, b, c] = await run({ ranks: 3, to: 4, resume: true });
    expect([b, c]).toEqual([a, a]);
    await run({ to: 6, resume: true });
  });

  it("draws random weights of a base again, where it has no other", async () => {
    const keys = ["model.preset=tiny", "model.layers=1"];
    const whole = await run({ to: 4, from: "", keys, out: "whole" });
    await run({ to: 2, from: "", keys });
    expect(await run({ to: 4, resume: true })).toEqual(whole);
    expect(await values("run")).toEqual(await values("whole"));
    expect(await failure({ to: 5, from: "run" })).toMatch(/the base of .* has random weights; .*export --merge/);
  });

  it("begins with the adapter of another run, whose form it keeps", async () => {
    await run({ to: 2, keys: ["adapter.rank=2", "adapter.targets=[down_proj]"], out: "first" });
    const before = await values("first");
    await run({ to: 0, from: "first", keys: ["adapter.base=bf16"], out: "second" });
    expect(await values("second")).toEqual(before);
    expect(await failure({ to: 1, from: "first", keys: ["adapter.rank=4", "adapter.alpha=8"] })).toMatch(
      /^adapter\.rank: is given as 4, and .*adapter_config\.json says 2; leave it out$/,
    );
  });
});

describe("the base of an adapter", () => {
  it("that has moved is named, and found with --base", async () => {
    const whole = await run({ to: 4, out: "whole" });
    await run({ to: 2 });
    renameSync(join(folder, "base"), join(folder, "moved"));
    expect(await failure({ to: 4, resume: true })).toMatch(
      /the adapter in .*step-2 belongs to the weights of .*base, and there is no such folder; .*--base FOLDER/,
    );
    const [saved, moved] = [join(folder, "run", "step-2"), join(folder, "moved")];
    await expect(readInitialWeights(saved)).rejects.toThrow("there is no such folder");
    expect((await readInitialWeights(saved, moved)).adapter).toMatchObject({ base: { folder: moved } });
    const gone = join(folder, "base");
    expect(foundTokenizer(saved, gone, moved)).toBe(gone); // it has none
    writeFileSync(join(moved, "tokenizer.json"), "{}");
    expect(foundTokenizer(saved, gone, moved)).toBe(moved);
    for (const [tokenizer, base] of [
      [gone, undefined],
      [saved, moved],
      ["bytes", moved],
    ] as const)
      expect(foundTokenizer(saved, tokenizer, base)).toBe(tokenizer);
    rmSync(join(moved, "tokenizer.json"));
    expect(await run({ to: 4, resume: true, base: "moved" })).toEqual(whole);
    await run({ to: 5, resume: true, keys: ["steps=9"] }); // the save of before names the folder where it was found
  });

  it("that has changed is refused", async () => {
    await run({ to: 2 });
    await writeBase("base", {}, 98);
    const changed = /base\/model\.safetensors has other weights than when the adapter in .*step-2 was trained; put/;
    expect(await failure({ to: 4, resume: true })).toMatch(changed);
    expect(await failure({ to: 4, from: "run", out: "other" })).toMatch(changed);
    await expect(loadModelOf(join(folder, "run"))).rejects.toThrow(changed);
  });

  it("is weights, and no adapter, and an adapter none of other weights", async () => {
    await run({ to: 1 });
    cpSync(join(folder, "run", "step-1"), join(folder, "adapter"), { recursive: true });
    rmSync(join(folder, "adapter", "manifest.json"));
    expect(await failure({ to: 2, resume: true, base: "adapter" })).toMatch(/adapter has an adapter, and no base/);
    expect(await failure({ to: 2, from: "base", base: "base", out: "other" })).toMatch(
      /--base: .* has the weights of a whole model, and no adapter; leave it out/,
    );
    expect(await failure({ to: 2, from: "adapter", keys: ["adapter=null"], out: "other" })).toMatch(
      /adapter: null, and .*adapter_config\.json has one; leave it out/,
    );
    for (const [name, changed] of [
      ["wide", { width: 64, hidden: 96 }],
      ["deep", { layers: 3 }],
    ] as const) {
      await writeBase(name, changed);
      const config = JSON.stringify({ peft_type: "LORA", r: 8, lora_alpha: 8, target_modules: ["q_proj", "v_proj"] });
      writeFileSync(join(folder, "adapter", "adapter_config.json"), config);
      const tensors = await readSafetensors(join(folder, "adapter", "adapter_model.safetensors"));
      await writeSafetensors(join(folder, "adapter", "adapter_model.safetensors"), tensors); // as PEFT: no base
      rmSync(join(folder, "adapter", "config.json"), { force: true });
      expect(await failure({ to: 2, from: "adapter", base: name, out: "other" })).toMatch(
        name === "wide" ? /adapter_model\.safetensors does not fit its base .*lora_A/ : /missing .*layers\.2/,
      );
    }
  });
});

it.each([
  [["adapter.targets=[q_porj]"], /adapter\.targets: q_porj matches no layer; did you mean q_proj\?/],
  [["adapter.targets=[]"], /adapter\.targets: names nothing/],
  [["adapter.rank=0"], /adapter\.rank/],
  [["exchange.buffers=mean"], /exchange\.buffers: mean, and with adapter/],
  [["adapter=lora"], /write --adapter\.name=lora/],
  [["adapter.name=lroa"], /adapter\.name/],
] as const)("refuses %s", async (keys, message) => {
  expect(await failure({ to: 1, keys })).toMatch(message);
});

it("refuses to add an adapter to a run that has none, and to take it away", async () => {
  await run({ to: 1 });
  expect(await failure({ to: 2, resume: true, keys: ["adapter=null"] })).toMatch(/adapter/);
  expect(await failure({ to: 2, resume: true, keys: ["adapter.rank=4"] })).toMatch(
    /adapter\.rank: 4, and the save has 8: a resumed run keeps it/,
  );
});

it("refuses an adapter onto a base of another kind of model", async () => {
  await run({ to: 1 });
  const config = { model_type: "gpt2", vocab_size: 256, n_positions: 32, n_embd: 32, n_head: 4, n_layer: 2 };
  const other = restoreModel(config);
  await saveModel(join(folder, "other"), other.stateDict(), config, other);
  cpSync(join(folder, "run", "step-1"), join(folder, "adapter"), { recursive: true });
  rmSync(join(folder, "adapter", "manifest.json"));
  const tensors = await readSafetensors(join(folder, "adapter", "adapter_model.safetensors"));
  await writeSafetensors(join(folder, "adapter", "adapter_model.safetensors"), tensors); // as PEFT: no record of its base
  expect(await failure({ to: 2, from: "adapter", base: "other", out: "second" })).toMatch(
    /the adapter in .*adapter is of a llama, and its base, .*other, a gpt2: name the folder of its own base, --base FOLDER/,
  );
});

it("takes recipe fine-tune, whose noDecay names norms that no adapter has", async () => {
  expect(readRecipe("fine-tune", []).optimizer.noDecay).toEqual(["norm", "vector"]);
  await run({ to: 1 }); // of that recipe
});
