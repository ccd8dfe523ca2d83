/** `./terse export RUN`: the model of a run alone, as a folder that transformers or safetensors, and `--init-from`, open; and its tokenizer or image processor. */
import { copyFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { CheckpointError, configFile, makeFolder, weightsFile, writeSafetensors } from "@terse/checkpoint";
import { DataError, type DatasetEntry, datasets } from "@terse/data";
import { OptionsError, parseArguments, print } from "@terse/options";
import { isModelFolder, loadModelOf, modelFolderOf, newestRun, saveOfModel } from "../saves/model-of-run.ts";

/** The files of a model in Hugging Face's layout, among those of a save. */
const ofModel = (name: string) =>
  name === configFile ||
  /^(tokenizer.*\.json|preprocessor_config\.json|model.*\.safetensors(\.index\.json)?)$/.test(name);

export async function exportCommand(argv: readonly string[]): Promise<void> {
  const { flags, words } = parseArguments(argv, {
    command: "./terse export",
    flags: { out: String, ownNames: "switch" } as const,
  });
  if (words.length > 1)
    throw new OptionsError([`export takes one run, got "${words[1]}" too; the folder to write is --out FOLDER`]);
  const run = words[0] ?? newestRun();
  const from = await modelFolderOf(run);
  const out = resolve(flags.out ?? `${basename(resolve(run))}-model`);
  makeFolder(out);
  if (readdirSync(out).length > 0)
    throw new CheckpointError(`${out} is not empty: choose another folder, --out FOLDER`);
  // The weights last: a folder that has them is complete.
  const files = flags.ownNames ? await exportWeights(run, out) : await exportAll(run, from, out);
  print(`${out}: ${files.join(", ")}`);
}

async function exportAll(run: string, from: string, out: string): Promise<string[]> {
  const processor = await processorOf(run);
  for (const [name, text] of Object.entries(processor)) writeFileSync(join(out, name), text);
  const files = readdirSync(from).filter(ofModel);
  const isWeights = (name: string) => Number(name.startsWith("model"));
  for (const name of files.sort((a, b) => isWeights(a) - isWeights(b))) copyFileSync(join(from, name), join(out, name));
  return [...Object.keys(processor), ...files];
}

/** Weights alone: with these names transformers would not find them, and would take random ones. */
async function exportWeights(run: string, out: string): Promise<string[]> {
  const model = await loadModelOf(run);
  await writeSafetensors(join(out, weightsFile), model.stateDict(), { format: "pt" });
  return [weightsFile];
}

/** The files that prepare inputs as a run's data does. */
async function processorOf(run: string): Promise<Readonly<Record<string, string>>> {
  if (isModelFolder(run)) return {};
  const { data } = saveOfModel(run).manifest.recipe;
  const entry: DatasetEntry = datasets[data.name];
  try {
    return (await entry.processorFiles?.(data)) ?? {};
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    print(`without a tokenizer: ${error.message}`, process.stderr);
    return {};
  }
}
