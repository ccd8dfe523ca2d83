/**
 * `./terse export RUN`: the model of a run alone, with its tokenizer or image processor, in a folder that transformers,
 * safetensors and `--init-from` open.
 */
import { readdirSync, renameSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import {
  adapterConfigFile,
  adapterFile,
  atomicWriteText,
  CheckpointError,
  type Config,
  configFile,
  filesOfWeights,
  makeFolder,
  mayExist,
  saveModel,
  weightsFile,
  writeSafetensors,
} from "@terse/checkpoint";
import { DataError, type DatasetEntry, datasets } from "@terse/data";
import { loraOf, type Model } from "@terse/models";
import { OptionsError, parseArguments, print } from "@terse/options";
import { isAdapterFolder } from "../adapter/base.ts";
import { untilSignal } from "../data/until-signal.ts";
import { checkCopied } from "../saves/check-copied.ts";
import { foundDataOf } from "../saves/found-tokenizer.ts";
import { copyFiles, initialFiles, keptIn, ofImages, ofModel, ofTokenizer } from "../saves/initial-files.ts";
import {
  describedModel,
  isModelFolder,
  loadDescribed,
  modelFolderOf,
  newestRun,
  restoredModel,
} from "../saves/model-of-run.ts";
import { locateRun, remove } from "../saves/save-folder.ts";

export async function exportCommand(argv: readonly string[]): Promise<void> {
  const { flags, words } = parseArguments(argv, {
    command: "./terse export",
    flags: { out: String, ownNames: "switch", merge: "switch", base: String } as const,
  });
  if (words.length > 1)
    throw new OptionsError([`export takes one run, got "${words[1]}" too; the folder to write is --out FOLDER`]);
  const run = words[0] ?? newestRun();
  const from = await modelFolderOf(run);
  checkFlags(run, flags, isAdapterFolder(from));
  const isCopied = !flags.merge && !flags.ownNames;
  if (isCopied) await checkCopied(from);
  const out = resolve(flags.out ?? `${basename(resolve(run))}-model`);
  makeFolder(out);
  if (readdirSync(out).length > 0)
    throw new CheckpointError(`${out} is not empty: choose another folder, --out FOLDER`);
  const whole = isCopied ? undefined : await wholeModel(from, flags.base);
  const beside = [from, ...(whole?.base ?? [])];
  const files = await untilSignal((signal) =>
    writeTogether(out, signal, async (to) =>
      whole && flags.ownNames
        ? exportOwnNames(whole, to)
        : [...(await exportBeside(run, beside, { to, signal })), ...(await exportModel(from, whole, { to, signal }))],
    ),
  );
  print(`${out}: ${files.join(", ")}`);
}

/** Where files are written, and until when. */
interface Target {
  readonly to: string; // a folder
  readonly signal: AbortSignal;
}

/**
 * Lets `write` write files into a folder of their own in `out`, and moves them to `out` in the order of their names, the
 * weights last: a folder that has them is complete. Where that fails, `out` stays empty.
 */
async function writeTogether(
  out: string,
  signal: AbortSignal,
  write: (to: string) => Promise<string[]>,
): Promise<string[]> {
  const unfinished = join(out, `.unfinished-${process.pid}.tmp`);
  try {
    makeFolder(unfinished);
    const names = await write(unfinished);
    signal.throwIfAborted();
    for (const name of names) renameSync(join(unfinished, name), join(out, name));
    return names;
  } finally {
    remove(unfinished);
  }
}

/** Throws `OptionsError` where flags do not fit what is exported. */
function checkFlags(run: string, flags: { ownNames?: true; merge?: true; base?: string }, isAdapter: boolean): void {
  if (flags.merge && !isAdapter)
    throw new OptionsError([`--merge: ${run} has the weights of a whole model, and no adapter; leave it out`]);
  if (flags.base !== undefined && !flags.merge)
    throw new OptionsError(["--base: is for --merge, which reads the base of an adapter; add that, or leave it out"]);
  if (flags.ownNames && isAdapter && !flags.merge)
    throw new OptionsError([`--own-names: ${run} has an adapter, whose names are PEFT's; add --merge`]);
}

/** A model with all its weights, those of an adapter merged into those of its base. */
interface WholeModel {
  readonly model: Model;
  readonly config: Config;
  readonly base: readonly string[]; // the folder of the base, if there is one
}

async function wholeModel(from: string, moved: string | undefined): Promise<WholeModel> {
  const described = await describedModel(from, moved);
  const model = restoredModel(described);
  await loadDescribed(from, described, model);
  loraOf(model)?.merge();
  const { base } = described.adapter ?? {};
  return { model, config: described.config, base: base && "folder" in base ? [base.folder] : [] };
}

/**
 * Writes the files of the tokenizer and the image processor, and how to generate. Of other folders those of the first
 * that has them, and no others: they may be somebody else's.
 */
async function exportBeside(run: string, folders: readonly string[], { to, signal }: Target): Promise<string[]> {
  if (isModelFolder(run)) {
    const known = [...ofModel, ...ofTokenizer, ...ofImages];
    const first = (name: string) => folders.find((folder) => mayExist(join(folder, name)));
    const found = known.filter((name) => first(name) !== undefined);
    for (const folder of folders)
      await copyFiles(
        folder,
        to,
        found.filter((name) => first(name) === folder),
        signal,
      );
    return found;
  }
  const kept = keptIn(locateRun(run).run);
  const processor = await processorOf(run, kept);
  await copyFiles(join(locateRun(run).run, initialFiles), to, kept, signal);
  for (const [name, text] of Object.entries(processor)) await atomicWriteText(join(to, name), text);
  return [...new Set([...kept, ...Object.keys(processor)])];
}

/** Writes a whole model anew; else copies the files of the model or of the adapter. */
async function exportModel(from: string, whole: WholeModel | undefined, { to, signal }: Target): Promise<string[]> {
  if (whole) return (await saveModel(to, whole.model.stateDict(), whole.config, whole.model)).map(({ name }) => name);
  const isAdapter = isAdapterFolder(from);
  const weights = isAdapter ? [adapterConfigFile, adapterFile] : await filesOfWeights(from);
  const files = [...(!isAdapter || mayExist(join(from, configFile)) ? [configFile] : []), ...weights];
  await copyFiles(from, to, files, signal);
  return files;
}

/** Weights alone: with these names transformers would not find them, and would take random ones. */
async function exportOwnNames({ model }: WholeModel, to: string): Promise<string[]> {
  await writeSafetensors(join(to, weightsFile), model.stateDict(), { format: "pt" });
  return [weightsFile];
}

/** The files that prepare inputs as a run's data does. */
async function processorOf(run: string, kept: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const data = await foundDataOf(run, undefined);
  const entry: DatasetEntry = datasets[data.name];
  try {
    return (await entry.processorFiles?.(data)) ?? {};
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    if (!kept.includes("tokenizer.json")) print(`without a tokenizer: ${error.message}`, process.stderr);
    return {};
  }
}
