/**
 * What a folder of weights says about a run that begins with them: its model with all sizes, and its tokenizer. It
 * replaces what the recipe's file says. What the command line says must agree with it.
 */
import { join, resolve } from "node:path";
import {
  adapterConfigFile,
  CheckpointError,
  type Config,
  configFile,
  isObject,
  mayExist,
  parsedJson,
  readSmallText,
} from "@terse/checkpoint";
import { type DatasetName, datasets, inOtherForm, otherTokenizers } from "@terse/data";
import { type ModelName, models, modelsFor } from "@terse/models";
import { OptionsError } from "@terse/options";
import type { DescribedAdapter } from "../adapter/adapter-folder.ts";
import { foundTokenizer, isAdapterFolder } from "../adapter/base.ts";
import { readsData } from "../reads-data.ts";
import type { Recipe } from "../recipe.ts";
import { type ImageForm, imageFormOf } from "./image-form.ts";
import { describedModel, folderOfModel, isModelFolder, saveOfModel, untiedRemark } from "./model-of-run.ts";

/** JSON: rank 0 reads it, and tells the others. */
export interface InitialWeights {
  /** Its config.json, for messages. */
  readonly file: string;
  /** What config.json says; absent where the folder has weights alone. */
  readonly config?: Config;
  /** The name of a copy of a tied tensor, which has other values: the model is not tied. */
  readonly copy?: string;
  /** The value of data.tokenizer that suits the weights. */
  readonly tokenizer?: string;
  /** Why the tokenizer beside the weights is not read, and what to do. */
  readonly unreadTokenizer?: string;
  /** The folder has an adapter: the model is that of its base. */
  readonly adapter?: DescribedAdapter;
  /** The form of pictures that suits the weights. */
  readonly image?: ImageForm;
}

/**
 * Reads weights only where they may be those of an untied model. Throws `CheckpointError`, also where config.json
 * describes no model.
 */
export async function readInitialWeights(name: string, moved?: string): Promise<InitialWeights> {
  const folder = folderOfModel(name);
  if (isAdapterFolder(folder)) return readInitialAdapter(name, folder, moved);
  if (moved !== undefined)
    throw new CheckpointError(`--base: ${name} has the weights of a whole model, and no adapter; leave it out`);
  const file = join(folder, configFile);
  const own = tokenizerOfWeights(name);
  const image = imageOf(name, folder);
  if (!mayExist(file)) return { file, image, ...(own !== undefined && { tokenizer: own }) };
  const { name: model, ...described } = await describedModel(folder);
  const { vocabulary } = models[model].read(described.config) as { vocabulary?: number };
  if (own !== undefined) return { file, image, ...described, tokenizer: own };
  const unreadTokenizer = vocabulary === undefined ? undefined : await whyUnread(name);
  if (unreadTokenizer !== undefined) return { file, image, ...described, unreadTokenizer };
  const tokenizer = await knownTokenizer(name, vocabulary);
  return { file, image, ...described, ...(tokenizer !== undefined && { tokenizer }) };
}

/** An adapter begins with the weights of its base, and what they say. */
async function readInitialAdapter(name: string, folder: string, moved: string | undefined): Promise<InitialWeights> {
  const { config, copy, adapter } = await describedModel(folder, moved);
  const { base } = adapter!;
  if ("seed" in base)
    throw new CheckpointError(
      `the base of the adapter in ${folder} has random weights; write the whole model with ./terse export --merge ${name}, and begin with that`,
    );
  const own = tokenizerOfWeights(name);
  const ofBase = own === undefined ? await readInitialWeights(base.folder) : undefined;
  const tokenizer = own === undefined ? ofBase?.tokenizer : foundTokenizer(folder, own, moved);
  return {
    file: join(folder, adapterConfigFile),
    config,
    image: imageOf(isModelFolder(name) ? base.folder : name, base.folder),
    adapter: adapter!,
    ...(tokenizer !== undefined && { tokenizer }),
    ...(ofBase?.unreadTokenizer !== undefined && { unreadTokenizer: ofBase.unreadTokenizer }),
    ...(copy !== undefined && { copy }),
  };
}

/** The tokenizer of a run's data; for another folder, its own. */
export function tokenizerOfWeights(name: string): string | undefined {
  const folder = resolve(name);
  if (isModelFolder(name)) return mayExist(join(folder, "tokenizer.json")) ? folder : undefined;
  const { tokenizer } = saveOfModel(name).manifest.recipe.data as { tokenizer?: unknown };
  return typeof tokenizer === "string" ? foundTokenizer(folder, tokenizer, undefined) : undefined;
}

/** The form of a run's images; for another folder, what its image processor says. */
function imageOf(name: string, folder: string): ImageForm {
  if (isModelFolder(name)) return imageFormOf(folder);
  const { size, mean, deviation } = saveOfModel(name).manifest.recipe.data as ImageForm;
  return JSON.parse(JSON.stringify({ size, mean, deviation }));
}

/**
 * The tokenizer that weights without one have, by the number of its tokens, which a model may have rounded up. Throws
 * `CheckpointError` where they have another one, in files that are not read.
 */
export async function knownTokenizer(name: string, vocabulary: number | undefined): Promise<string | undefined> {
  const unread = await whyUnread(name);
  if (unread !== undefined) throw new CheckpointError(unread);
  if (vocabulary === 256) return "bytes";
  return vocabulary !== undefined && vocabulary >= 50257 && vocabulary < 50257 + 128 ? "gpt2" : undefined;
}

const mostVocabularyBytes = 100e6;

/** Why the tokenizer in a folder of weights is not read, though there is no tokenizer.json; undefined where none is. */
async function whyUnread(name: string): Promise<string | undefined> {
  const folder = resolve(name);
  const file = otherTokenizers.find((each) => mayExist(join(folder, each)));
  if (file === undefined || (file === "vocab.json" && (await isOfGpt2(join(folder, file))))) return undefined;
  return inOtherForm(folder, file);
}

/** Whether a vocab.json is GPT-2's own. Its merges are then GPT-2's too, because tokens are numbered in their order. */
async function isOfGpt2(path: string): Promise<boolean> {
  const { "tokenizer.json": json } = (await datasets.text.processorFiles!({ tokenizer: "gpt2" }))!;
  const { vocab } = (JSON.parse(json!) as { model: { vocab: Readonly<Record<string, number>> } }).model;
  const found = parsedJson(readSmallText(path, mostVocabularyBytes));
  return isObject(found) && Object.entries(vocab).every(([token, id]) => (found as Tree)[token] === id);
}

type Tree = Readonly<Record<string, unknown>>;

const sectionOf = (tree: Tree, key: string): Tree => (isObject(tree[key]) ? tree[key] : {});

/** The first data that a model reads, where neither the recipe nor the command line names some. */
const dataOf = (model: ModelName) => (Object.keys(datasets) as DatasetName[]).find((name) => readsData(model, name))!;

/**
 * What replaces keys of the recipe's file. Throws `OptionsError` where keys of the command line contradict the folder,
 * with a line for each key.
 */
export function recipeOfWeights(
  weights: InitialWeights,
  { file, commandLine, newHead }: { file: Tree; commandLine: Tree; newHead: boolean },
): Tree {
  const { config, copy, tokenizer, unreadTokenizer, image = {}, adapter } = weights;
  if (config === undefined) return {};
  if (adapter) checkAdapter(adapter, commandLine);
  const [ofFile, ofUser] = [sectionOf(file, "model"), sectionOf(commandLine, "model")];
  const name = modelName(weights, file, commandLine);
  const { ofData = [], ofTraining = [], read } = models[name];
  const options: Tree = { ...read(config), ...(copy !== undefined && { tied: false }) };
  checkCommandLine(weights, name, options, ofUser);
  const isOwn = (key: string) => ofTraining.includes(key) && ofFile["name"] === name && key in ofFile;
  const taken = Object.entries(options).filter(([key]) => !ofData.includes(key) && !isOwn(key));
  const data = dataSection(name, options, {
    tokenizer,
    unreadTokenizer,
    image,
    newHead,
    file: sectionOf(file, "data"),
    commandLine: sectionOf(commandLine, "data"),
  });
  const added = adapter && { adapter: { name: "lora", ...adapter.options } };
  return { model: { name, ...Object.fromEntries(taken) }, data, ...added };
}

const reads = (model: ModelName, data: unknown) =>
  Object.hasOwn(datasets, data as string) && readsData(model, data as DatasetName);

/**
 * Weights fit several models that differ in their head. The first choice is the one that the user or the recipe names,
 * or that reads the data.
 */
function modelName({ file: described, config }: InitialWeights, file: Tree, commandLine: Tree): ModelName {
  const candidates = modelsFor(config!);
  const [ofUser, ofFile] = [sectionOf(commandLine, "model")["name"], sectionOf(file, "model")["name"]];
  if (ofUser !== undefined && !candidates.includes(ofUser as ModelName))
    throw new OptionsError([
      `model.name: is given as ${ofUser}, and ${described} describes ${candidates.join(" or ")}; leave it out`,
    ]);
  const data = sectionOf(commandLine, "data")["name"];
  return (
    candidates.find((each) => each === ofUser) ??
    candidates.find((each) => reads(each, data)) ??
    candidates.find((each) => each === ofFile) ??
    candidates[0]!
  );
}

/** Throws `OptionsError` where the command line gives an adapter another form than its files have. */
function checkAdapter({ folder, options }: DescribedAdapter, commandLine: Tree): void {
  const file = join(folder, adapterConfigFile);
  if (commandLine["adapter"] === null) throw new OptionsError([`adapter: null, and ${file} has one; leave it out`]);
  const known: Tree = { name: "lora", ...options };
  const problems = Object.entries(sectionOf(commandLine, "adapter")).flatMap(([key, value]) => {
    const [given, own] = [value, known[key]].map((each) => JSON.stringify(each));
    const isFree = ["base", "dropout"].includes(key) || given === own;
    return isFree ? [] : [`adapter.${key}: is given as ${given}, and ${file} says ${own}; leave it out`];
  });
  if (problems.length > 0) throw new OptionsError(problems);
}

/** Throws `OptionsError` where the command line gives a model another size than the weights have. */
function checkCommandLine({ file, copy }: InitialWeights, model: ModelName, options: Tree, commandLine: Tree): void {
  const { ofData = [], ofTraining = [], presets, options: schema } = models[model];
  const isFixed = (key: string) => key in options && !ofData.includes(key) && !ofTraining.includes(key);
  const differs = (key: string, value: unknown) =>
    isFixed(key) && JSON.stringify(value) !== JSON.stringify(options[key]);
  const problems = Object.entries(commandLine).flatMap(([key, value]) =>
    key in schema.entries && value !== null && differs(key, value)
      ? [
          key === "tied" && copy !== undefined
            ? `model.tied: is given as ${JSON.stringify(value)}, and the weights next to ${file} have ${copy} with other values than the embedding; leave it out`
            : `model.${key}: is given as ${JSON.stringify(value)}, and ${file} says ${JSON.stringify(options[key])}; leave it out`,
        ]
      : [],
  );
  const { preset } = commandLine;
  const of = typeof preset === "string" && Object.hasOwn(presets, preset) ? presets[preset]! : {};
  const [other] = Object.entries(of).filter(([key, value]) => !(key in commandLine) && differs(key, value));
  if (other)
    problems.push(
      `model.preset: ${preset} has ${other[0]} ${JSON.stringify(other[1])}, and ${file} says ${JSON.stringify(options[other[0]])}; leave it out`,
    );
  if (problems.length > 0) throw new OptionsError(problems);
}

/** Tokens of a row where the weights' context has more and nobody says how many: such a row needs much memory. */
const mostTokens = 1024;

function dataSection(
  model: ModelName,
  options: Tree,
  {
    tokenizer,
    unreadTokenizer,
    image,
    newHead,
    file,
    commandLine,
  }: Pick<InitialWeights, "tokenizer" | "unreadTokenizer"> & {
    image: ImageForm;
    newHead: boolean;
    file: Tree;
    commandLine: Tree;
  },
): Tree {
  const ofFile = reads(model, file["name"]) ? (file["name"] as DatasetName) : undefined;
  const name = Object.hasOwn(datasets, String(commandLine["name"]))
    ? (commandLine["name"] as DatasetName)
    : (ofFile ?? dataOf(model));
  const { entries } = datasets[name].options;
  const before = name === file["name"] ? file : {};
  const isNamed = "tokenizer" in before || "tokenizer" in commandLine;
  if (unreadTokenizer !== undefined && "tokenizer" in entries && name !== "tokens" && !isNamed)
    throw new OptionsError([`${unreadTokenizer}, or name another one, --data.tokenizer=FILE`]);
  const { context } = options as { context?: number };
  const found: Tree = {
    ...(context !== undefined && context > mostTokens && { blockSize: mostTokens }),
    ...(tokenizer !== undefined && { tokenizer }),
    ...(name === "labelled-text" && !newHead && { classes: options["classes"] }), // those of pictures are their folders
    ...(name === "image-folder" && { size: options["imageSize"] ?? 224, ...image, resize: true }),
  };
  const fits = ([key]: readonly [string, unknown]) => key in entries && !(key in before);
  return { name, ...Object.fromEntries(Object.entries(found).filter(fits)), batchSize: file["batchSize"] ?? 4 };
}

/** What the user should know of a run that begins with them, a line each. */
export function remarksOnWeights(
  weights: InitialWeights,
  { model, data, optimizer, trainedWeights }: Recipe,
  rate: "of a recipe here" | "given",
): string[] {
  const { file, config, copy, tokenizer } = weights;
  if (config === undefined) return [];
  const { ofData = [], read } = models[model.name];
  const { name: _, preset: __, ...options } = model as Tree & { name: ModelName; preset: string };
  const known = Object.keys(read(config)).filter((key) => !ofData.includes(key) && key in options);
  const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  const text = known.map((key) => `${key} ${shown(options[key])}`).join(", ");
  const { blockSize } = data as { blockSize?: number };
  const { context } = options as { context?: number };
  return [
    `the model is that of ${file}: ${model.name}, ${text}`,
    ...(blockSize !== undefined && context !== undefined && blockSize < context
      ? [`rows have ${blockSize} tokens, of the ${context} that the model can read: data.blockSize`]
      : []),
    ...(copy === undefined ? [] : [untiedRemark(copy)]),
    ...tokenizerRemark(data, tokenizer),
    ...(rate === "given" || trainedWeights ? [] : [rateRemark(optimizer)]),
  ];
}

function tokenizerRemark(data: Recipe["data"], own: string | undefined): string[] {
  if (!("tokenizer" in data)) return [];
  if (own === undefined && data.tokenizer === "bytes")
    return [
      "data.tokenizer is bytes, and the weights come with no tokenizer.json: tokens may mean something else; name theirs, --data.tokenizer=FILE",
    ];
  if (own === undefined) return [];
  const other = otherTokenizerRemark(data, own);
  return other.length > 0 || own === "bytes" ? other : [`data.tokenizer is that of the weights, ${own}`];
}

/** A line where the data is not read by the tokenizer that the weights come with. Both are names or paths. */
export function otherTokenizerRemark(data: Recipe["data"], own: string | undefined): string[] {
  const { tokenizer: used } = data as { tokenizer?: string };
  const folderOf = (path: string) => resolve(path).replace(/\/tokenizer\.json$/, "");
  if (used === undefined || own === undefined || folderOf(used) === folderOf(own)) return [];
  return [`data.tokenizer is ${used}, and the weights come with another one, ${own}: tokens may mean something else`];
}

const rateRemark = ({ lr }: Recipe["optimizer"]) =>
  `optimizer.lr is ${lr}, the recipe's rate for random weights, which destroys trained ones: take --recipe fine-tune, or give a smaller rate, --optimizer.lr`;
