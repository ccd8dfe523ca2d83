/**
 * The folder of a run:
 *
 *   recipe.json      the recipe with every default filled in
 *   metrics.jsonl    one line per logged step
 *   state.json       the current save: its step, its folder, the position in the data
 *   step-N/          a save: config.json and model.safetensors (PyTorch's names), state-rank-R.safetensors of each rank
 *
 * A new save is written beside the current one. When all ranks have written theirs, state.json is replaced, and the older save is
 * removed. So state.json always names a complete save.
 */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import {
  atomicWriteText,
  CheckpointError,
  loadConfig,
  loadModel,
  openSafetensors,
  saveModel,
  writeSafetensors,
} from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import type { Dataset, DatasetState } from "@terse/data";
import { type Model, restoreModel } from "@terse/models";
import { type Optimizer, SavedStateError, type StoredState } from "@terse/optimizers";
import { OptionsError } from "@terse/options";
import { scope, type TypedArray } from "@terse/tensor";
import type { TrainArguments } from "./arguments.ts";
import { defaultRecipe, type Recipe } from "./recipe.ts";

/** The folder of runs without --out. */
const runs = "runs";

interface Parts {
  model: Model;
  data: Dataset;
  optimizer: Optimizer;
}

interface State {
  step: number;
  folder: string; // of the save, within the run
  ranks: number;
  data: DatasetState;
}

export class Run {
  readonly folder: string;
  /** Steps that were taken before this process started. */
  readonly step: number;
  readonly #modelType: string;
  readonly #group: Group;
  readonly #parts: Parts;

  constructor(folder: string, step: number, { model }: Recipe, group: Group, parts: Parts) {
    this.folder = folder;
    this.step = step;
    this.#modelType = model.name;
    this.#group = group;
    this.#parts = parts;
  }

  /** Writes a line of metrics.jsonl. */
  log(line: object): void {
    appendFileSync(join(this.folder, "metrics.jsonl"), `${JSON.stringify(line)}\n`);
  }

  /** Every rank writes its own state, rank 0 also the model; the save becomes the current one when all ranks are done. */
  async save(step: number): Promise<void> {
    const { model, data, optimizer } = this.#parts;
    const name = `step-${step}`;
    const folder = join(this.folder, name);
    makeFolder(folder);
    const mine = join(folder, stateFile(this.#group.rank));
    await scope(async () => {
      const { tensors, scalars } = await optimizer.state();
      await writeSafetensors(mine, tensors, { scalars: JSON.stringify(scalars) });
    });
    if (this.#group.rank === 0)
      await saveModel(folder, model.namedParameters(), { model_type: this.#modelType, ...model.config });
    await this.#group.barrier();
    const state: State = { step, folder: name, ranks: this.#group.size, data: data.state() };
    if (this.#group.rank === 0)
      await atomicWriteText(join(this.folder, "state.json"), `${JSON.stringify(state, undefined, 2)}\n`);
    await this.#group.barrier();
    for (const older of readdirSync(this.folder))
      if (/^step-\d+$/.test(older) && older !== name)
        rmSync(join(this.folder, older), { recursive: true, force: true });
  }
}

const stateFile = (rank: number) => `state-rank-${rank}.safetensors`;

/** Makes the run's folder, or continues the run of `--resume`: restores weights, optimizer and data position. */
export async function openRun(
  recipe: Recipe,
  group: Group,
  parts: Parts,
  args: Pick<TrainArguments, "recipe" | "out" | "resume">,
): Promise<Run> {
  if (args.resume !== undefined) return resumeRun(resolve(args.resume), recipe, group, parts);
  const folder = await agreeOn(group, group.rank === 0 ? claimFolder(args) : "");
  if (group.rank === 0) await atomicWriteText(join(folder, "recipe.json"), `${JSON.stringify(recipe, undefined, 2)}\n`);
  makeFolder(folder); // rank 0 may be on another machine
  return new Run(folder, 0, recipe, group, parts);
}

async function resumeRun(folder: string, recipe: Recipe, group: Group, parts: Parts): Promise<Run> {
  const state = readState(folder);
  if (state.ranks !== group.size)
    throw new CheckpointError(
      `${folder} was saved by ${state.ranks} ranks, each with its own momentum, and this run has ${group.size}: use --nproc-per-node ${state.ranks}`,
    );
  const { model, data, optimizer } = parts;
  const save = join(folder, state.folder);
  await loadModel(save, model.namedParameters());
  await restoreOptimizer(optimizer, state.step, join(save, stateFile(group.rank)), group);
  data.restore(state.data);
  if (group.rank === 0) await removeMetricsFrom(folder, state.step);
  return new Run(folder, state.step, recipe, group, parts);
}

/** This rank's own state, from its file. */
async function restoreOptimizer(optimizer: Optimizer, step: number, path: string, group: Group): Promise<void> {
  await using file = await openSafetensors(path);
  const tensors = new Map<string, TypedArray>();
  for (const name of file.tensors.keys()) tensors.set(name, (await file.read(name)).data);
  const scalars = JSON.parse(file.metadata["scalars"] ?? "{}") as StoredState["scalars"];
  const none: StoredState = { tensors: new Map(), scalars: {} };
  const saves = Array.from({ length: group.size }, (_, rank) => (rank === group.rank ? { tensors, scalars } : none));
  try {
    await scope(() => optimizer.restore(step, saves));
  } catch (error) {
    if (error instanceof SavedStateError) throw new CheckpointError(`Cannot resume from ${path}: ${error.message}`);
    throw error;
  }
}

/** Removes the metrics of steps after the save, because these steps are taken again. */
async function removeMetricsFrom(folder: string, step: number): Promise<void> {
  const path = join(folder, "metrics.jsonl");
  if (!existsSync(path)) return;
  const kept = readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "" && (JSON.parse(line) as { step: number }).step < step);
  await atomicWriteText(path, kept.map((line) => `${line}\n`).join(""));
}

function readState(folder: string): State {
  const path = join(folder, "state.json");
  if (!existsSync(path))
    throw new CheckpointError(
      `${folder} has no saved run (${path} is missing); name the folder of a run that has been saved`,
    );
  try {
    const state = JSON.parse(readFileSync(path, "utf8")) as State;
    // A save is inside its run's folder; any other name is refused.
    const inside = typeof state.folder === "string" && /^step-\d+$/.test(state.folder);
    if (Number.isSafeInteger(state.step) && inside && state.data) return state;
  } catch {
    // reported below
  }
  throw new CheckpointError(`${path} does not describe a save; use another run`);
}

/** The file of a run's recipe. */
export function recipeOf(folder: string): string {
  readState(folder);
  return join(folder, "recipe.json");
}

/** A saved run's model. */
export async function loadModelOf(folder: string): Promise<Model> {
  const save = join(folder, readState(folder).folder);
  const config = await loadConfig(save);
  let model: Model;
  try {
    model = restoreModel(config);
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw new CheckpointError(`${join(save, "config.json")} describes no model that is known here: ${error.message}`);
  }
  await loadModel(save, model.namedParameters());
  return model;
}

/** The folder of the run that was saved last. */
export function newestRun(): string {
  const folders = existsSync(runs) ? readdirSync(runs).map((name) => join(runs, name)) : [];
  const time = (folder: string) => statSync(join(folder, "state.json")).mtimeMs;
  const newest = folders
    .filter((folder) => existsSync(join(folder, "state.json")))
    .sort((a, b) => time(b) - time(a))[0];
  if (!newest)
    throw new CheckpointError(
      `there is no saved run in ${resolve(runs)}; train one with ./terse train, or name a run's folder`,
    );
  return newest;
}

/** Makes a new folder for this run. */
function claimFolder({ out, recipe }: Pick<TrainArguments, "recipe" | "out">): string {
  if (out !== undefined) {
    const folder = resolve(out);
    makeFolder(folder);
    if (readdirSync(folder).length > 0)
      throw new CheckpointError(
        `${folder} is not empty, and a run needs its own folder: choose another --out, or continue the run in it with --resume`,
      );
    return folder;
  }
  const name = basename(recipe ?? defaultRecipe.pathname).replace(/\.ya?ml$/, "");
  const time = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  makeFolder(resolve(runs));
  for (let i = 1; ; i++) {
    const folder = resolve(runs, `${name}-${time}${i > 1 ? `-${i}` : ""}`);
    if (existsSync(folder)) continue;
    makeFolder(folder);
    return folder;
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new CheckpointError(
      `the folder ${folder} cannot be created (${(error as NodeJS.ErrnoException).code}); choose another with --out`,
    );
  }
}

/** Broadcasts rank 0's text. */
async function agreeOn(group: Group, text: string): Promise<string> {
  const bytes = new Uint8Array(4096);
  new TextEncoder().encodeInto(text, bytes);
  await group.broadcast(bytes, 0);
  return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
}
