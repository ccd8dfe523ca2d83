/** The model of a save, for those who need nothing else of it. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  CheckpointError,
  checkFile,
  configFile,
  loadConfig,
  loadModel,
  manifestFile,
  openSafetensors,
  weightsFile,
} from "@terse/checkpoint";
import { countParameters, type Model, restoreModel } from "@terse/models";
import { OptionsError } from "@terse/options";
import { readSave, runsFolder, saveFolder, savesIn } from "./save-folder.ts";

/** The folder with the weights that `path` names: a run, one of its saves, or any folder with a model. Files of a save are checked. */
export async function modelFolderOf(path: string): Promise<string> {
  const folder = resolve(path);
  if (existsSync(join(folder, weightsFile)) && !existsSync(join(folder, manifestFile))) return folder;
  const save = readSave(path);
  for (const file of save.manifest.files)
    if ([weightsFile, configFile].includes(file.name)) await checkFile(save.folder, file, save.manifest.files);
  return save.folder;
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
  await loadModel(folder, model.namedParameters());
  return model;
}

/** Before a model is made, because a wrong size could take all memory. */
async function checkSize(folder: string, described: number): Promise<void> {
  await using file = await openSafetensors(join(folder, weightsFile));
  const stored = [...file.tensors.values()].reduce(
    (sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1),
    0,
  );
  if (stored !== described)
    throw new CheckpointError(
      `${join(folder, configFile)} describes a model of ${described} parameters, and ${weightsFile} has ${stored}: they belong to different models`,
    );
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
