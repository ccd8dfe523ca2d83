import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { Llama, type LlamaOptions, Lora, loraOf } from "@terse/models";
import { manualSeed } from "@terse/tensor";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type BaseFolder, recordBase } from "../adapter/base.ts";
import { loadBaseOn, loadInitialOn } from "./load-on.ts";

const shape: LlamaOptions = { vocabulary: 64, context: 16, width: 64, heads: 2, layers: 2, hidden: 96 };
const lora = { rank: 2, alpha: 2, rslora: false, dropout: 0, modulesToSave: [] };

let folder: string;
let weights: number[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "terse-load-on-"));
  weights = await write("base", 1);
  await write("other", 2);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function write(name: string, seed: number): Promise<number[]> {
  manualSeed(seed);
  const model = new Llama(shape);
  await saveModel(join(folder, name), model.stateDict(), { model_type: "llama", ...model.config });
  return valuesOf(model);
}

async function valuesOf(model: Llama): Promise<number[]> {
  const tensors = (loraOf(model)?.baseState() ?? model.stateDict()).map(([, tensor]) => tensor);
  return (await Promise.all(tensors.map(async (each) => [...((await each.toTypedArray()) as Float32Array)]))).flat();
}

const load = {
  "weights with which a run begins": (base, model, group) => loadInitialOn(0, base, model, group),
  "the base of an adapter": async (base, model, group) => {
    new Lora(model, lora);
    const described = { folder: "adapter", options: lora, base };
    await loadBaseOn(0, async () => described, model, group, base.folder);
  },
} satisfies Record<
  string,
  (base: BaseFolder, model: Llama, group: ReturnType<typeof loopback>[number]) => Promise<void>
>;

/** Each rank has its own folder. Resolves to the bytes that all ranks sent. */
async function sentFrom(how: keyof typeof load, folders: readonly string[], { recorded = false } = {}) {
  const groups = loopback(folders.length);
  try {
    await Promise.all(
      groups.map(async (group, rank) => {
        const own = join(folder, folders[rank]!);
        const model = new Llama(shape);
        await load[how](recorded && rank === 0 ? await recordBase(own) : { folder: own }, model, group);
        expect(await valuesOf(model)).toEqual(weights);
      }),
    );
    return groups.reduce((sum, group) => sum + group.sent().bytes, 0);
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

const size = () => 4 * weights.length;

it.each(Object.keys(load) as (keyof typeof load)[])("%s are sent where a rank lacks them alone", async (how) => {
  for (const ranks of [2, 3]) {
    const others = Array.from({ length: ranks - 2 }, () => "base");
    cpSync(join(folder, "base"), join(folder, "copy"), { recursive: true });
    for (const recorded of [false, true])
      expect(await sentFrom(how, ["base", ...others, "copy"], { recorded })).toBeLessThan(1000 * ranks);
    for (const last of ["nowhere", "other"])
      expect(await sentFrom(how, ["base", ...others, last]), last).toBeGreaterThanOrEqual(size() * (ranks - 1));
  }
});
