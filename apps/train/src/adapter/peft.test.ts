/** Adapters of PEFT opened here, and ours opened by PEFT and by transformers. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { Gpt2, Llama, loraOf, type Model, Vit } from "@terse/models";
import { Arena, manualSeed, noGrad, randint, randn, type Tensor } from "@terse/tensor";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { needsModules, relativeError, runPython } from "../../../../packages/tensor/src/testing/python.ts";
import { buildData, buildModel, buildOptimizer } from "../build.ts";
import { exportCommand } from "../commands/export.ts";
import { forwardIn } from "../precision.ts";
import { recipeFor } from "../recipe-for.ts";
import { readInitialWeights } from "../saves/initial-weights.ts";
import { loadModelOf } from "../saves/model-of-run.ts";
import { openRun } from "../saves/open-run.ts";
import { takeStep } from "../take-step.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-peft-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => {
  for (const stream of [process.stdout, process.stderr]) vi.spyOn(stream, "write").mockReturnValue(true);
  return () => vi.restoreAllMocks();
});
const text = join(folder, "text");
writeFileSync(text, "the quick brown fox jumps over the lazy dog. ".repeat(200));

interface Case {
  create(): Model;
  readonly type: string; // model_type
  readonly auto: string; // transformers' class
  readonly keys: readonly string[]; // of our run
  readonly peft: string; // of theirs
  inputs(): Tensor;
  logits(model: Model, x: Tensor): Tensor;
}

const ofText = ["data.name=text", "data.tokenizer=bytes", `data.path=${JSON.stringify(text)}`];
const textModel = { vocabulary: 256, context: 32, width: 32, heads: 4, layers: 2 };
const cases: Readonly<Record<string, Case>> = {
  "llama with its own head": {
    create: () => new Llama({ ...textModel, keyValueHeads: 2, hidden: 48, tied: false }),
    type: "llama",
    auto: "AutoModelForCausalLM",
    keys: [...ofText, "adapter.targets=all-linear", "adapter.rslora=true", "adapter.modulesToSave=[norm]"],
    // PEFT leaves c_attn alone, which this model does not have, and takes every module whose name ends in norm.
    peft: `r=4, lora_alpha=6, target_modules=["q_proj", "down_proj", "lm_head", "c_attn"], modules_to_save=["norm"], task_type="CAUSAL_LM"`,
    inputs: () => randint(0, 256, [2, 16]),
    logits: (model, x) => (model as Llama).forward(x),
  },
  gpt2: {
    create: () => new Gpt2(textModel),
    type: "gpt2",
    auto: "AutoModelForCausalLM",
    keys: ofText,
    peft: `r=3, target_modules=r".*h\\.1.*\\.c_(attn|proj)", use_rslora=True, task_type="CAUSAL_LM"`,
    inputs: () => randint(0, 256, [2, 16]),
    logits: (model, x) => (model as Gpt2).forward(x),
  },
  "vit, whose query, key and value are one layer here": {
    create: () =>
      new Vit({ channels: 3, imageSize: 16, patchSize: 8, width: 32, heads: 2, layers: 2, classes: 10, eps: 1e-12 }),
    type: "vit",
    auto: "AutoModelForImageClassification",
    keys: ["data.name=made-images", "data.size=16", "adapter.modulesToSave=[classifier]"],
    peft: `target_modules=["q_proj", "v_proj"], modules_to_save=["classifier"]`,
    inputs: () => randn([2, 3, 16, 16]),
    logits: (model, x) => (model as Vit).forward(x),
  },
};

/** transformers' model `b` of the base, and its logits. */
const python = (base: string, auto: string, body: string) => `
import transformers as t, peft, warnings
warnings.simplefilter("ignore"); t.logging.disable_progress_bar(); t.logging.set_verbosity_error()
open_base = lambda folder=${JSON.stringify(base)}: t.${auto}.from_pretrained(folder, attn_implementation="eager")
logits = lambda m: m.eval()(inputs["x"]).logits
${body}`;

/** Saves a run that begins with these weights: an adapter begins with random values, and trains two steps. */
async function trained(base: string, out: string, keys: readonly string[]): Promise<void> {
  const overrides = [...keys, "optimizer.lr=0.01", "steps=2"];
  const weights = await readInitialWeights(base);
  const recipe = recipeFor({ recipe: "fine-tune", overrides }, weights);
  const [group] = loopback(1) as [ReturnType<typeof loopback>[number]];
  mkdirSync(out);
  await using run = await openRun(recipe, group, { out, overrides, initFrom: base, weights });
  const model = buildModel(recipe);
  const arena = new Arena(model);
  const data = await buildData(recipe, model, group);
  await using optimizer = await buildOptimizer(recipe, arena, group);
  await run.begin({ model, data, optimizer });
  noGrad(() => {
    for (const [, p] of loraOf(model)!.parameters()) p.add_(randn(p.shape), { alpha: 0.1 });
  });
  const training = { model, arena, data, optimizer, forward: forwardIn(recipe), accumulate: 1 };
  for (let step = 0; step < 2; step++) await takeStep(training, recipe.optimizer.lr);
  expect(await run.save(2)).toBeUndefined();
}

const missing = needsModules("transformers", "peft");

describe.skipIf(missing !== "").each(Object.keys(cases))(`beside peft, %s${missing}`, (name) => {
  const { create, type, auto, keys, peft, inputs, logits } = cases[name]!;
  const at = (...names: string[]) => join(folder, name.replaceAll(/\W/g, "-"), ...names);

  it("a run's adapter, and its model merged, have the same logits there", async () => {
    mkdirSync(at());
    manualSeed(5);
    const model = create();
    await saveModel(at("base"), model.stateDict(), { model_type: type, ...model.config }, model);
    await trained(at("base"), at("run"), [...keys, "adapter.name=lora"]);
    await exportCommand([at("run"), "--out", at("adapter")]);
    await exportCommand([at("run"), "--merge", "--out", at("merged")]);
    const x = inputs();
    const theirs = await runPython(
      python(
        at("base"),
        auto,
        `outputs["adapted"] = logits(peft.PeftModel.from_pretrained(open_base(), ${JSON.stringify(at("adapter"))}))
outputs["merged"] = logits(open_base(${JSON.stringify(at("merged"))}))
outputs["base"] = logits(open_base())`,
      ),
      { x },
    );
    const ours = noGrad(() => model.eval() && logits(model, x));
    expect(relativeError(ours, theirs["base"]!)).toBeLessThan(1e-5);
    for (const path of ["run", "adapter", "merged"]) {
      const opened = (await loadModelOf(at(path))).eval() as Model;
      const found = noGrad(() => logits(opened, x));
      expect(relativeError(found, theirs["adapted"]!), path).toBeLessThan(1e-5);
      expect(relativeError(found, theirs["merged"]!), path).toBeLessThan(1e-5);
      expect(relativeError(found, theirs["base"]!), path).toBeGreaterThan(1e-3);
    }
  });

  it("a run's adapter is trained on by PEFT, then by a run again, and merged, with the same logits at every step", async () => {
    const x = inputs();
    const ours = async (path: string) => {
      const opened = (await loadModelOf(at(path))).eval() as Model;
      return noGrad(() => logits(opened, x));
    };
    const peftAt = `peft.PeftModel.from_pretrained(open_base(), ${JSON.stringify(at("adapter"))}, is_trainable=True)`;
    const theirs = await runPython(
      python(
        at("base"),
        auto,
        `m = ${peftAt}
outputs["before"] = logits(m)
trained = [p for p in m.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=0.01)
for step in range(3):
    optimizer.zero_grad()
    m.train()(inputs["x"]).logits.square().mean().backward()
    optimizer.step()
outputs["after"] = logits(m)
m.save_pretrained(${JSON.stringify(at("trained-on"))})
outputs["merged"] = logits(m.merge_and_unload())`,
      ),
      { x },
    );
    expect(relativeError(await ours("adapter"), theirs["before"]!)).toBeLessThan(1e-5);
    expect(relativeError(theirs["before"]!, theirs["after"]!)).toBeGreaterThan(1e-3);
    await exportCommand([at("trained-on"), "--merge", "--out", at("trained-on-merged")]);
    for (const path of ["trained-on", "trained-on-merged"])
      for (const of of ["after", "merged"])
        expect(relativeError(await ours(path), theirs[of]!), `${path}, ${of}`).toBeLessThan(1e-5);

    await trained(
      at("trained-on"),
      at("run-again"),
      keys.filter((key) => !key.startsWith("adapter.")),
    );
    await exportCommand([at("run-again"), "--out", at("again")]);
    await exportCommand([at("run-again"), "--merge", "--out", at("again-merged")]);
    const again = await runPython(
      python(
        at("base"),
        auto,
        `outputs["again"] = logits(peft.PeftModel.from_pretrained(open_base(), ${JSON.stringify(at("again"))}))
outputs["merged"] = logits(open_base(${JSON.stringify(at("again-merged"))}))`,
      ),
      { x },
    );
    expect(relativeError(again["again"]!, theirs["after"]!)).toBeGreaterThan(1e-3);
    for (const path of ["run-again", "again", "again-merged"])
      for (const of of ["again", "merged"])
        expect(relativeError(await ours(path), again[of]!), `${path}, ${of}`).toBeLessThan(1e-5);
  });

  it("an adapter of PEFT has the same logits here, and a run goes on with it", async () => {
    const x = inputs();
    const theirs = await runPython(
      python(
        at("base"),
        auto,
        `torch.manual_seed(2)
m = peft.get_peft_model(open_base(), peft.LoraConfig(${peft}, init_lora_weights=False))
for n, p in m.named_parameters():
    if "modules_to_save" in n: p.data.add_(torch.randn_like(p) * 0.1)
m.save_pretrained(${JSON.stringify(at("theirs"))}, save_embedding_layers=${type === "vit" ? "'auto'" : "True"})
outputs["adapted"] = logits(m)`,
      ),
      { x },
    );
    const opened = (await loadModelOf(at("theirs"))).eval() as Model;
    expect(
      relativeError(
        noGrad(() => logits(opened, x)),
        theirs["adapted"]!,
      ),
    ).toBeLessThan(1e-5);
    const weights = await readInitialWeights(at("theirs"));
    const overrides = [...keys.filter((key) => !key.startsWith("adapter.")), "steps=2"];
    const recipe = recipeFor({ recipe: "fine-tune", overrides }, weights);
    const count = (model: Model) => loraOf(model)!.parameters().length;
    expect(count(buildModel(recipe))).toBe(count(opened));
    await exportCommand([at("theirs"), "--merge", "--out", at("theirs-merged")]);
    const merged = await runPython(
      python(at("base"), auto, `outputs["merged"] = logits(open_base(${JSON.stringify(at("theirs-merged"))}))`),
      { x },
    );
    expect(relativeError(merged["merged"]!, theirs["adapted"]!)).toBeLessThan(1e-5);
  });

  it("what its config asks for and is not computed here is refused by its key", async () => {
    const file = at("theirs", "adapter_config.json");
    const config = JSON.parse(readFileSync(file, "utf8")) as object;
    for (const [changed, message] of [
      [{ use_dora: true }, "use_dora: is true, which is not computed here"],
      [{ rank_pattern: { q_proj: 2 } }, 'rank_pattern: is {"q_proj":2}'],
      [{ bias: "all" }, 'bias: is "all", and only none is known here'],
      [{ init_lora_weights: "pissa" }, 'init_lora_weights: is "pissa", which changes the base'],
      [{ peft_type: "IA3" }, 'peft_type: is "IA3", and only LORA is known here'],
      [{ target_modules: ["no_such_layer"], layers_to_transform: null }, "no_such_layer matches no layer"],
      [{ r: 0 }, "rank"],
    ] as const) {
      writeFileSync(file, JSON.stringify({ ...config, ...changed }));
      await expect(loadModelOf(at("theirs")), message).rejects.toThrow(message);
    }
    writeFileSync(file, JSON.stringify(config));
  });
});
