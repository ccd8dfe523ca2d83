/**
 * The base of an adapter: the weights that it changes. The adapter's file names it, in its metadata, with a record of
 * each file, so that other weights are not taken for it:
 *
 *   base   { "folder": "/models/SmolLM-135M", "files": [{ "name": "model.safetensors", "bytes": …, "crc32": … }] }
 *   base   { "seed": 0 }    random weights, which are drawn again
 */
import { existsSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import {
  adapterConfigFile,
  adapterFile,
  CheckpointError,
  type Config,
  type FileRecord,
  filesOfWeights,
  hasAdapter,
  hasWeights,
  mayExist,
  openSafetensors,
  parsedJson,
  recordOf,
} from "@terse/checkpoint";
import { initialFiles } from "../saves/initial-files.ts";
import { averageFolder, locateRun, saveFolder, savesIn } from "../saves/save-folder.ts";

/** Weights in files; without records where it is not known what they had when the adapter was trained. */
export interface BaseFolder {
  readonly folder: string;
  readonly files?: readonly FileRecord[];
}

/** Random weights of this seed. */
export interface BaseSeed {
  readonly seed: number;
}

export type Base = BaseFolder | BaseSeed;

/** Whether a folder has an adapter alone, and not the weights of a whole model. */
export const isAdapterFolder = (folder: string): boolean => hasAdapter(folder) && !hasWeights(folder);

/** The weights in a folder as the base of an adapter. Reads all of them. Throws `CheckpointError`. */
export async function recordBase(folder: string): Promise<BaseFolder> {
  const files: FileRecord[] = [];
  for (const name of await filesOfWeights(folder)) files.push(await recordOf(folder, name));
  return { folder, files };
}

/**
 * The base of the adapter in a folder: where the adapter says, or `moved`, the folder that the user names. Throws
 * `CheckpointError` where it is not there, or has other weights than when the adapter was trained.
 */
export async function findBase(folder: string, config: Config, moved: string | undefined): Promise<Base> {
  const recorded = await recordedBase(folder);
  if (recorded !== undefined && "seed" in recorded) {
    if (moved !== undefined)
      throw new CheckpointError(
        `--base: the base of the adapter in ${folder} has random weights, which are drawn again from their seed; leave it out`,
      );
    return recorded;
  }
  const named = moved ?? recorded?.folder ?? config["base_model_name_or_path"];
  if (typeof named !== "string" || named === "")
    throw new CheckpointError(
      `${join(folder, adapterConfigFile)} names no base (base_model_name_or_path); name its folder, --base FOLDER`,
    );
  const at = weightsIn(named);
  const remedy = `name the folder of the base, --base FOLDER`;
  if (!mayExist(at))
    throw new CheckpointError(
      `the adapter in ${folder} belongs to the weights of ${named}, and there is no such folder; terse downloads none: ${remedy}`,
    );
  if (isAdapterFolder(at))
    throw new CheckpointError(`${named} has an adapter, and no base of the one in ${folder}; ${remedy}`);
  if (!hasWeights(at))
    throw new CheckpointError(
      `the adapter in ${folder} belongs to the weights of ${named}, and there are none; ${remedy}`,
    );
  if (recorded?.files === undefined) return { folder: at };
  for (const { name, bytes, crc32 } of recorded.files) {
    const now = mayExist(join(at, name)) ? await recordOf(at, name) : undefined;
    if (now?.bytes !== bytes || now.crc32 !== crc32)
      throw new CheckpointError(
        `${join(at, name)} ${now ? "has other weights than" : "is not there, and was"} when the adapter in ${folder} was trained; put the file back, or ${remedy}`,
      );
  }
  return { folder: at, files: recorded.files };
}

/**
 * The tokenizer of the run whose save is in `folder`: where it was, or, where it is not there any more, that of `moved`,
 * the base of the save's adapter, or the one that the run has kept.
 */
export function foundTokenizer(folder: string, tokenizer: string, moved: string | undefined): string {
  if (!isAbsolute(tokenizer) || existsSync(tokenizer)) return tokenizer;
  const ofBase = moved !== undefined && isAdapterFolder(folder) ? [weightsIn(moved)] : [];
  const possible = [...ofBase, join(locateRun(folder).run, initialFiles)];
  return possible.find((each) => existsSync(join(each, "tokenizer.json"))) ?? tokenizer;
}

/** The folder of weights that `path` names: of a run its last save, RUN/best, or RUN/average. */
function weightsIn(path: string): string {
  const at = resolve(path);
  if (hasWeights(at) || hasAdapter(at)) return at;
  const { run, isAverage, step = savesIn(run).at(-1) } = locateRun(at);
  if (step === undefined) return at;
  return isAverage ? join(saveFolder(run, step), averageFolder) : saveFolder(run, step);
}

/** What the adapter's file says of its base; undefined where it says nothing, as PEFT's. */
async function recordedBase(folder: string): Promise<Base | undefined> {
  const path = join(folder, adapterFile);
  if (!existsSync(path))
    throw new CheckpointError(
      `${folder} has ${adapterConfigFile} and no ${adapterFile}; copy it too, as safetensors (adapter_model.bin is not read)`,
    );
  await using file = await openSafetensors(path);
  const text = file.metadata["base"];
  if (text === undefined) return undefined;
  const base = parsedJson(text) as Partial<BaseFolder & BaseSeed> | null | undefined;
  if (Number.isSafeInteger(base?.seed) || (typeof base?.folder === "string" && Array.isArray(base.files)))
    return base as Base;
  throw new CheckpointError(`${path} says of its base what is not known here: ${text.slice(0, 200)}; use another save`);
}
