/**
 * `./terse export RUN`: the model of a run alone, with its tokenizer or image processor, in a folder that transformers,
 * safetensors and `--init-from` open.
 */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import {
  CheckpointError,
  configFile,
  filesOfWeights,
  makeFolder,
  openWeights,
  weightsFile,
  writeSafetensors,
} from "@terse/checkpoint";
import { DataError, type DatasetEntry, datasets } from "@terse/data";
import { OptionsError, parseArguments, print } from "@terse/options";
import { copyFiles, initialFiles, keptIn, ofImages, ofModel, ofTokenizer } from "../saves/initial-files.ts";
import { isModelFolder, loadModelOf, modelFolderOf, newestRun, saveOfModel } from "../saves/model-of-run.ts";
import { locateRun } from "../saves/save-folder.ts";

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

/**
 * Copies the files of the model, its tokenizer and its image processor, and no others: the folder may be somebody
 * else's.
 */
async function exportAll(run: string, from: string, out: string): Promise<string[]> {
  const weights = await filesOfWeights(from);
  await (await openWeights(from))[Symbol.asyncDispose](); // throws where they are none
  const isForeign = isModelFolder(run);
  const kept = isForeign ? [] : keptIn(locateRun(run).run);
  const processor = isForeign ? {} : await processorOf(run, kept);
  copyFiles(join(locateRun(run).run, initialFiles), out, kept);
  for (const [name, text] of Object.entries(processor)) writeFileSync(join(out, name), text);
  const beside = isForeign
    ? [...ofModel, ...ofTokenizer, ...ofImages].filter((name) => existsSync(join(from, name)))
    : [];
  const files = [configFile, ...beside, ...weights];
  copyFiles(from, out, files);
  return [...new Set([...kept, ...Object.keys(processor), ...files])];
}

/** Weights alone: with these names transformers would not find them, and would take random ones. */
async function exportWeights(run: string, out: string): Promise<string[]> {
  const model = await loadModelOf(run);
  await writeSafetensors(join(out, weightsFile), model.stateDict(), { format: "pt" });
  return [weightsFile];
}

/** The files that prepare inputs as a run's data does. */
async function processorOf(run: string, kept: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const { data } = saveOfModel(run).manifest.recipe;
  const entry: DatasetEntry = datasets[data.name];
  try {
    return (await entry.processorFiles?.(data)) ?? {};
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    if (!kept.includes("tokenizer.json")) print(`without a tokenizer: ${error.message}`, process.stderr);
    return {};
  }
}
