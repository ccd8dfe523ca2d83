/** The model of a save, for those who need nothing else of it. */
import { readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  CheckpointError,
  type Config,
  checkFile,
  configFile,
  differingCopy,
  hasAdapter,
  hasWeights,
  indexFile,
  loadConfig,
  loadModel,
  manifestFile,
  mayExist,
  misfits,
  pickledWeights,
  storedElements,
  weightsFile,
} from "@terse/checkpoint";
import { baseStateOf, countElements, type Model, type ModelName, models, modelsFor, withNewHead } from "@terse/models";
import { OptionsError } from "@terse/options";
import { manualSeed, scope, withDevice } from "@terse/tensor";
import {
  addDescribed,
  type DescribedAdapter,
  describedAdapter,
  loadAdapter,
  loadBase,
} from "../adapter/adapter-folder.ts";
import { isAdapterFolder } from "../adapter/base.ts";
import {
  averageFolder,
  hasAverage,
  isOfAverage,
  isStateFile,
  locateRun,
  namedInstead,
  newestSeen,
  noSave,
  readSave,
  runsFolder,
  type SaveManifest,
  saveFolder,
} from "./save-folder.ts";

/**
 * Whether `path` is a folder with weights or an adapter that is no save, nor a part of one, such as transformers and
 * PEFT write.
 */
export const isModelFolder = (path: string): boolean =>
  (hasWeights(resolve(path)) || hasAdapter(resolve(path))) &&
  !mayExist(join(resolve(path), manifestFile)) &&
  !locateRun(path).isAverage;

/** The folder of weights that `path` names: a run, a save, or any folder with a model. Checks the files of a save. */
export async function modelFolderOf(path: string): Promise<string> {
  const folder = resolve(path);
  if (isModelFolder(path)) return folder;
  const { folder: save, manifest } = readSave(path, noModel);
  const { isAverage } = locateRun(path);
  for (const file of manifest.files)
    if (!isStateFile(file.name) && isOfAverage(file) === isAverage) await checkFile(save, file, manifest.files);
  return folderOfModel(path);
}

/**
 * The save that `path` names, and its folder of weights. Throws `CheckpointError` that says what else could be named: a
 * folder of weights is allowed too.
 */
export function saveOfModel(path: string): { folder: string; manifest: SaveManifest } {
  const { folder, manifest } = readSave(path, noModel);
  if (!locateRun(path).isAverage) return { folder, manifest };
  if (!hasAverage(manifest))
    throw new CheckpointError(
      `${folder} has no average of the weights: its recipe has no section average, or it had not begun (average.from); name ${folder}`,
    );
  return { folder: join(folder, averageFolder), manifest };
}

/** Names of weights in other forms, or of shards without their index. */
const otherWeights = /\.(safetensors|gguf|ggml|onnx|h5|msgpack|npz)$|\.(bin|safetensors)\.index\.json$/;

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
  const other = readdirSync(path).find((name) => otherWeights.test(name));
  const isShard = other !== undefined && /-\d{5}-of-\d{5}\.safetensors$/.test(other);
  const why = isShard ? `a shard without its index, ${indexFile}` : "which is not read";
  const shown = other === undefined ? "" : `, but ${other}, ${why}`;
  return new CheckpointError(
    namedInstead(path) ??
      `${path} has no saved run (step-N/${manifestFile}), and no weights (${weightsFile} and ${configFile}, as transformers' save_pretrained writes them)${shown}; name a folder that has one of them`,
  );
}

/** The folder with a model's weights, which is not checked. */
export const folderOfModel = (path: string): string => (isModelFolder(path) ? resolve(path) : saveOfModel(path).folder);

/** Where the base of an adapter is, and who is told what the user should know of a model. */
interface LoadOptions {
  readonly base?: string | undefined;
  readonly remark?: (words: string) => void;
}

/** A saved run's model. */
export async function loadModelOf(path: string, { base, remark = () => {} }: LoadOptions = {}): Promise<Model> {
  const folder = await modelFolderOf(path);
  const described = await describedModel(folder, base);
  if (described.copy !== undefined) remark(untiedRemark(described.copy));
  const model = restoredModel(described);
  await loadDescribed(folder, described, model);
  return model;
}

/** Sets all values of a model from the folder that describes it. */
export async function loadDescribed(folder: string, { adapter }: DescribedModel, model: Model): Promise<void> {
  if (!adapter) return loadModel(folder, model.stateDict(), model);
  await loadBase(adapter.base, model);
  await loadAdapter(folder, model);
}

/** What a folder says of its model: JSON, so that one rank can tell the others. */
export interface DescribedModel {
  readonly name: ModelName;
  readonly config: Config;
  /** The name of a copy of a tied tensor, which has other values: the model is not tied. */
  readonly copy?: string;
  readonly adapter?: DescribedAdapter;
}

/**
 * Reads of the weights no more than it must. `base`: that of an adapter, where it is not where the adapter says. Throws
 * `CheckpointError`.
 */
export async function describedModel(folder: string, base?: string): Promise<DescribedModel> {
  if (isAdapterFolder(folder)) return describedWithBase(folder, base);
  if (base !== undefined)
    throw new CheckpointError(`--base: ${folder} has the weights of a whole model, and no adapter; leave it out`);
  const config = await loadConfig(folder);
  try {
    const [name] = modelsFor(config) as [ModelName];
    const options = models[name].read(config);
    await checkSize(folder, name, options);
    const copy = await untiedCopy(folder, name, options);
    return { name, config, ...(copy !== undefined && { copy }) };
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw new CheckpointError(
      `${join(folder, configFile)} describes no model that is known here: ${error.lines.join("; ")}`,
    );
  }
}

/** The model of an adapter: that of its own config.json, where the folder has one, with the weights of its base. */
async function describedWithBase(folder: string, moved: string | undefined): Promise<DescribedModel> {
  const adapter = await describedAdapter(folder, moved);
  const own = mayExist(join(folder, configFile)) ? await loadConfig(folder) : undefined;
  if ("seed" in adapter.base) {
    const config = own ?? (await loadConfig(folder)); // throws
    return { name: modelsFor(config)[0]!, config, adapter };
  }
  const base = await describedModel(adapter.base.folder);
  if (own === undefined) return { ...base, adapter };
  const [[name], [other]] = [modelsFor(own), modelsFor(base.config)] as [[ModelName], [ModelName]];
  if (own["model_type"] !== base.config["model_type"])
    throw new CheckpointError(
      `the adapter in ${folder} is of a ${own["model_type"] ?? name}, and its base, ${adapter.base.folder}, a ${base.config["model_type"] ?? other}: name the folder of its own base, --base FOLDER`,
    );
  return { ...base, name, config: own, adapter };
}

/** The model with random weights, and with its adapter. Throws `CheckpointError` where that does not fit. */
export function restoredModel({ name, config, copy, adapter }: DescribedModel): Model {
  if (adapter && "seed" in adapter.base) manualSeed(adapter.base.seed);
  const { read, restore } = models[name];
  const model = restore({ ...read(config), ...(copy !== undefined && { tied: false }) });
  if (adapter) addDescribed(model, adapter);
  return model;
}

/**
 * Throws `CheckpointError` where the weights are less than half of what config.json describes. It is called before the
 * model is made, because a wrong size could take all memory. The weights may lack a head, and may have more: buffers,
 * or a tied parameter twice.
 */
export async function checkSize(folder: string, name: ModelName, options: object): Promise<void> {
  const [described, stored] = [countElements(models[name], options), await storedElements(folder)];
  if (described <= 2 * stored) return;
  const found = described <= 100 * stored ? await misfitsOf(folder, name, options) : "";
  throw new CheckpointError(
    `${join(folder, configFile)} describes a model of ${described} parameters, and ${weightsFile} has ${stored}: ${found || "they belong to different models"}`,
  );
}

/** How the weights of a folder differ from a model, which takes no memory for its values. */
const misfitsOf = (folder: string, name: ModelName, options: object): Promise<string> =>
  scope(() => {
    const model = withDevice("meta", () => models[name].restore(options));
    return misfits(folder, model.stateDict(), model);
  });

/**
 * The name of a tensor that the weights have beside the embedding and that a tied model would not have, because its
 * values differ. undefined where the model is tied, or can never be. `options` are those of the folder's config.json.
 */
async function untiedCopy(folder: string, name: ModelName, options: object): Promise<string | undefined> {
  if (!("tied" in options) || options.tied !== true) return undefined;
  return scope(() => {
    const model = withDevice("meta", () => models[name].restore(options));
    return differingCopy(folder, model.stateDict(), model);
  });
}

export const untiedRemark = (copy: string) =>
  `the weights have ${copy} with other values than the embedding: the model is not tied, as in transformers`;

/** Throws `CheckpointError` where the weights of a folder would fit the model with a new head, and do not without. */
export async function checkHead(folder: string, model: Model): Promise<void> {
  if (model.headNames === undefined) return;
  const found = await misfits(folder, baseStateOf(model), model);
  if (found === "" || (await misfits(folder, baseStateOf(model), withNewHead(model))) !== "") return;
  throw new CheckpointError(
    `the weights in ${folder} have another head: ${found}. With --new-head the others are loaded, and the head begins with random values`,
  );
}

/** Throws `CheckpointError` where the weights of a folder do not fit the model. Reads their headers alone. */
export async function checkShapes(folder: string, model: Model, { newHead }: { newHead: boolean }): Promise<void> {
  if (!newHead) await checkHead(folder, model);
  const found = await misfits(folder, baseStateOf(model), newHead ? withNewHead(model) : model);
  if (found !== "") throw new CheckpointError(`the weights in ${folder} do not fit this model: ${found}`);
}

/** The folder of the run that was saved last. */
export function newestRun(): string {
  const runs = mayExist(runsFolder) ? readdirSync(runsFolder).map((name) => join(runsFolder, name)) : [];
  const saved = runs.flatMap((run) => {
    const step = newestSeen(run);
    return step === undefined ? [] : [{ run, time: statSync(join(saveFolder(run, step), manifestFile)).mtimeMs }];
  });
  const newest = saved.sort((a, b) => b.time - a.time)[0];
  if (!newest)
    throw new CheckpointError(
      `there is no saved run in ${resolve(runsFolder)}; train one with ./terse train, or name a run's folder`,
    );
  return newest.run;
}
