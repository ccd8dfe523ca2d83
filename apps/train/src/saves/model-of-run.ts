/** The model of a save, for those who need nothing else of it. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  CheckpointError,
  type Config,
  checkFile,
  configFile,
  hasWeights,
  loadConfig,
  loadModel,
  manifestFile,
  misfits,
  pickledWeights,
  storedElements,
  weightsFile,
} from "@terse/checkpoint";
import { countParameters, type Model, restoreModel, withNewHead } from "@terse/models";
import { OptionsError } from "@terse/options";
import { locateRun, noSave, readSave, runsFolder, type SaveManifest, saveFolder, savesIn } from "./save-folder.ts";

/** Whether `path` is a folder with weights that is no save, such as transformers writes. */
export const isModelFolder = (path: string): boolean =>
  hasWeights(resolve(path)) && !existsSync(join(resolve(path), manifestFile));

/** The folder with the weights that `path` names: a run, one of its saves, or any folder with a model. Files of a save are checked. */
export async function modelFolderOf(path: string): Promise<string> {
  const folder = resolve(path);
  if (isModelFolder(path)) return folder;
  const save = saveOfModel(path);
  for (const file of save.manifest.files)
    if ([weightsFile, configFile].includes(file.name)) await checkFile(save.folder, file, save.manifest.files);
  return save.folder;
}

/** The save that `path` names. Throws `CheckpointError` that says what else could be named, because it may be a folder with weights too. */
export const saveOfModel = (path: string): { folder: string; manifest: SaveManifest } => readSave(path, noModel);

function noModel(path: string): CheckpointError {
  const pickled = pickledWeights(resolve(path));
  if (pickled !== undefined) return new CheckpointError(pickled);
  if (locateRun(path).step !== undefined) return noSave(path);
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined)
    return new CheckpointError(
      `there is no folder ${path}; terse downloads no weights: write them there with transformers' save_pretrained, or name a run`,
    );
  if (!status.isDirectory())
    return new CheckpointError(`${path} is a file; name the folder that holds it, ${dirname(path)}`);
  return new CheckpointError(
    `${path} has no saved run (step-N/${manifestFile}), and no weights (${weightsFile} and ${configFile}, as transformers' save_pretrained writes them); name a folder that has one of them`,
  );
}

/** A saved run's model. */
export async function loadModelOf(path: string): Promise<Model> {
  const folder = await modelFolderOf(path);
  const config = await loadConfig(folder);
  let model: Model;
  try {
    await checkSize(folder, countParameters(config));
    model = restoreModel(config);
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw new CheckpointError(`${join(folder, configFile)} describes no model that is known here: ${error.message}`);
  }
  await loadModel(folder, model.stateDict(), model);
  return model;
}

/**
 * Before a model is made, because a wrong size could take all memory. Weights may have more than parameters: buffers, or a tied one twice.
 */
async function checkSize(folder: string, described: number): Promise<void> {
  const stored = await storedElements(folder);
  if (stored < described)
    throw new CheckpointError(
      `${join(folder, configFile)} describes a model of ${described} parameters, and ${weightsFile} has ${stored}: they belong to different models`,
    );
}

/** Options of a config that change what a model computes, and no shape of its weights; and the key of a recipe's model that sets them. */
const silent: Readonly<Record<string, string | null>> = {
  heads: "heads",
  n_head: "heads",
  num_attention_heads: "heads",
  activation_function: null,
  hidden_act: null,
  layer_norm_epsilon: null,
  layer_norm_eps: "eps",
  scale_attn_weights: null,
  scale_attn_by_inverse_layer_idx: null,
  tied: "tied",
  tie_word_embeddings: "tied",
  is_decoder: null,
};

/**
 * Throws `CheckpointError` where the config.json of a folder, if it has one, says that its weights are for another model of the same shape.
 * `keys` are those that a recipe may give for this model.
 */
export async function checkConfig(folder: string, model: Model, keys: object): Promise<void> {
  if (!existsSync(join(folder, configFile))) return;
  const [theirs, ours] = [await loadConfig(folder), model.config as Config];
  const different = Object.entries(silent).flatMap(([key, own]) => {
    if (!(key in theirs && key in ours) || theirs[key] === ours[key]) return [];
    const hint = own !== null && own in keys ? ` (--model.${own}=${theirs[key]} here too)` : "";
    return [`${key} is ${JSON.stringify(theirs[key])} there and ${JSON.stringify(ours[key])} here${hint}`];
  });
  if (different.length > 0)
    throw new CheckpointError(`the weights in ${folder} are for another model: ${different.join("; ")}`);
}

/** Throws `CheckpointError` where the weights of a folder would fit the model with a new head, and do not without. */
export async function checkHead(folder: string, model: Model): Promise<void> {
  if (model.headNames === undefined) return;
  const found = await misfits(folder, model.stateDict(), model);
  if (found === "" || (await misfits(folder, model.stateDict(), withNewHead(model))) !== "") return;
  throw new CheckpointError(
    `the weights in ${folder} have another head: ${found}. With --new-head the others are loaded, and the head begins with random values`,
  );
}

/** The same where other shapes are wrong too. Reads the headers of the weights alone. */
export async function checkShapes(folder: string, model: Model, { newHead }: { newHead: boolean }): Promise<void> {
  if (!newHead) await checkHead(folder, model);
  const found = await misfits(folder, model.stateDict(), newHead ? withNewHead(model) : model);
  if (found !== "") throw new CheckpointError(`the weights in ${folder} do not fit this model: ${found}`);
}

/** The folder of the run that was saved last. */
export function newestRun(): string {
  const runs = existsSync(runsFolder) ? readdirSync(runsFolder).map((name) => join(runsFolder, name)) : [];
  const saved = runs.flatMap((run) => {
    const step = savesIn(run).at(-1);
    return step === undefined ? [] : [{ run, time: statSync(join(saveFolder(run, step), manifestFile)).mtimeMs }];
  });
  const newest = saved.sort((a, b) => b.time - a.time)[0];
  if (!newest)
    throw new CheckpointError(
      `there is no saved run in ${resolve(runsFolder)}; train one with ./terse train, or name a run's folder`,
    );
  return newest.run;
}
