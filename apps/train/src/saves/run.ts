/** One run: its folder, which it alone writes to, where it began, and its saves. */

import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { atomicWriteText, CheckpointError, type Config, makeFolder } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { headOf, withNewHead } from "@terse/models";
import { print } from "@terse/options";
import type { TrainArguments } from "../arguments.ts";
import { sentence } from "../failure.ts";
import {
  changesOf,
  defaultRecipe,
  droppedOptions,
  type Recipe,
  remarksOn,
  resumedRecipe,
  throwRefusals,
} from "../recipe.ts";
import type { Line } from "../shows/numbers-of.ts";
import { tellLauncher } from "../to-launcher.ts";
import { isTraceFile } from "../trace/write-trace.ts";
import { together } from "./between-ranks.ts";
import { checkSpace } from "./disk-space.ts";
import { DamagedSave, findSave, gatherSave, savedSteps } from "./find-save.ts";
import { lockFile, lockFolder } from "./folder-lock.ts";
import { initialFiles, keepInitialFiles } from "./initial-files.ts";
import { type InitialWeights, remarksOnWeights } from "./initial-weights.ts";
import { meaningsIn } from "./meanings.ts";
import { Metrics, type Sums } from "./metrics.ts";
import { checkHead, modelFolderOf } from "./model-of-run.ts";
import { loadWeightsOn, restoreSave } from "./restore-save.ts";
import { offerResume, resumeCommand } from "./resume-command.ts";
import { NotFiniteError } from "./save-files.ts";
import { locateRun, recipeFile, removeLeftovers, runsFolder, saveFolder, saveFoldersIn } from "./save-folder.ts";
import { ThreadWriter } from "./thread-writer.ts";
import { copyState, type Parts, type Place, type SavedParts, writeCopy } from "./write-save.ts";

type RunArguments = Pick<
  TrainArguments,
  "recipe" | "out" | "resume" | "logDir" | "initFrom" | "newHead" | "overrides"
> & {
  /** What the folder of `initFrom` says. */
  readonly weights?: InitialWeights | undefined;
};

interface Beginning {
  readonly step?: number; // of the save that it goes on from
  readonly sums?: Sums | undefined; // of that save
  readonly notes?: readonly string[];
  /** Resolves to what config.json says besides. */
  readonly restore?: (parts: Parts) => Promise<Config>;
}

/** Why a save could not be made, the same on all ranks, and whether that will last. */
export interface SaveFailure {
  readonly why: string;
  readonly lasts: boolean;
}

export class Run implements AsyncDisposable {
  readonly folder: string;
  readonly recipe: Recipe;
  /** Steps that were taken before this process started. */
  readonly step: number;
  /** Is given each line of metrics.jsonl, on rank 0. */
  reader: ((line: Line) => void) | undefined;
  /** Prints a line of what cannot be written, on rank 0. */
  note: (text: string) => void = (text) => print(text, process.stderr);
  /** Gives what a save says of the steps before it, on rank 0. */
  sums: (() => Sums) | undefined;
  readonly #notes: readonly string[];
  #ofMetrics: string | undefined; // what of metrics.jsonl could not be read
  readonly #place: Place;
  readonly #group: Group;
  readonly #before: Sums | undefined;
  readonly #restore: (parts: Parts) => Promise<Config>;
  readonly #metrics: Metrics;
  readonly #writer = new ThreadWriter();
  /** For messages about saves, which travel beside those of the steps. */
  #beside: Group | undefined;
  #parts: SavedParts | undefined;
  #underWay: Promise<void> | undefined; // the save that is being written
  #broken: unknown; // an error that is no failure of a save: the group's
  #savedStep: number | undefined;

  constructor(place: Place, group: Group, { step, sums, notes = [], restore = async () => ({}) }: Beginning) {
    this.folder = place.run;
    this.recipe = place.recipe;
    this.step = step ?? 0;
    this.#notes = notes;
    this.#place = place;
    this.#group = group;
    this.#restore = restore;
    this.#metrics = new Metrics(place.run, (text) => this.note(text));
    place.lock.onUnwritten = (why) => this.note(unwrittenText(place.run, why));
    this.#savedStep = step;
    this.#before = sums;
  }

  /** Sets the parts to where the run goes on, makes sure that there is space for saves, and writes the recipe. */
  async begin(parts: Parts): Promise<void> {
    this.#parts = { ...parts, meanings: await this.#restore(parts) };
    this.#beside = this.#group.size > 1 ? await this.#group.split(0) : this.#group;
    if (this.#place.lock.keeper === this.#group.rank) removeLeftovers(this.folder);
    await checkSpace(this.#place, parts, this.#group);
    await together(this.#group, async () => {
      if (this.#group.rank > 0) return;
      this.#ofMetrics = await this.#metrics.cutAt(this.step);
      await atomicWriteText(join(this.folder, recipeFile), `${JSON.stringify(this.recipe, undefined, 2)}\n`);
    });
    if (this.#group.rank === 0) tellLauncher({ run: this.folder });
    if (this.#savedStep !== undefined) this.#offerResume(this.#savedStep);
  }

  /** What the user should know of how it begins, a line each. */
  get notes(): readonly string[] {
    return this.#ofMetrics === undefined ? this.#notes : [...this.#notes, `metrics.jsonl: ${this.#ofMetrics}`];
  }

  /** What the save, or else the last line of metrics.jsonl, said of the steps before this process; on rank 0. */
  get logged(): Sums {
    return this.#before ?? this.#metrics.sums;
  }

  /** Throws `FolderTakenError` where another start has taken the folder, on the rank that keeps it. */
  checkFolder(): void {
    const { taken } = this.#place.lock;
    if (taken) throw taken;
  }

  /** Writes a line of metrics.jsonl, and gives it to `reader`. */
  log(line: Line): void {
    this.#metrics.log(line);
    this.reader?.(line);
  }

  /**
   * Copies the run after `step` steps when the save before it has been written, and writes the copy while the run goes on. `failed` is
   * called where it could not be saved, on all ranks.
   */
  async beginSave(step: number, failed: (failure: SaveFailure) => void): Promise<void> {
    await this.#complete();
    if (step === this.#savedStep) return;
    const sums = this.sums?.();
    const copy = await copyState(step, this.recipe, this.#parts!, this.#group.rank, this.#writer.spare);
    const write = async () => {
      try {
        await writeCopy({ ...copy, sums }, this.#place, this.#beside!, this.#writer);
        this.#savedStep = step;
        if (this.#group.rank === 0) tellLauncher({ saved: true });
        this.#offerResume(step);
      } catch (error) {
        if (error instanceof CheckpointError) failed({ why: sentence(error), lasts: error instanceof NotFiniteError });
        else this.#broken = error;
      }
      this.#underWay = undefined;
    };
    this.#underWay = write();
  }

  /** Saves the run after `step` steps, unless it has been. Resolves when the save is written. */
  async save(step: number): Promise<SaveFailure | undefined> {
    let failure: SaveFailure | undefined;
    await this.beginSave(step, (found) => {
      failure = found;
    });
    await this.#complete();
    return failure;
  }

  /** Resolves when no save is under way, whether or not it could be written. */
  async written(): Promise<void> {
    this.#writer.hurry();
    await this.#underWay;
  }

  /** Whether a save is being written. */
  get isSaving(): boolean {
    return this.#underWay !== undefined;
  }

  async #complete(): Promise<void> {
    await this.written();
    if (this.#broken !== undefined) throw this.#broken;
  }

  #offerResume(step: number): void {
    if (this.#group.rank > 0) return;
    offerResume(resumeCommand(this.folder, { step, steps: this.recipe.steps, ranks: this.#group.size }));
  }

  /** Waits for the save that is under way. Then other runs may use the folder; one in which nothing has been written is removed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.written();
    await this.#writer[Symbol.asyncDispose]();
    if (this.#beside !== this.#group) await this.#beside?.close();
    this.#metrics[Symbol.dispose]();
    leave(this.#place);
  }
}

/**
 * A new run, or the one of `--resume`; with `--resume auto` the one in `--out`, if it has been saved. Its parts are made by its recipe,
 * and then `begin` sets them. Throws on all ranks alike.
 */
export async function openRun(recipe: Recipe | undefined, group: Group, args: RunArguments): Promise<Run> {
  const { out, resume } = args;
  if (recipe === undefined) return resumeRun(resume!, args, group);
  const steps = resume === "auto" ? await savedSteps(resolve(out!), group) : [];
  return steps.length > 0 ? resumeIntact(resolve(out!), steps, args, group) : newRun(recipe, args, group);
}

/** Goes on from the first of these saves that is intact. */
async function resumeIntact(folder: string, steps: readonly number[], args: RunArguments, group: Group): Promise<Run> {
  const damaged: DamagedSave[] = [];
  for (const step of steps)
    try {
      const notes = damaged.map(({ message }, i) => `the save of step ${steps[i]} is passed over: ${message}`);
      return await resumeRun(saveFolder(folder, step), args, group, notes);
    } catch (error) {
      if (!(error instanceof DamagedSave)) throw error;
      damaged.push(error);
    }
  throw damaged[0]!;
}

async function newRun(recipe: Recipe, args: RunArguments, group: Group): Promise<Run> {
  const [folder] = (await together(group, () => (group.rank === 0 ? claimFolder(args) : ""))) as [string];
  const place = await placeOf(folder, recipe, group);
  const { initFrom, newHead, weights } = args;
  const notes = [...droppedOptions(args.recipe ?? defaultRecipe, args.overrides), ...remarksOn(recipe)];
  if (initFrom === undefined) return new Run(place, group, { notes });
  const restore = async ({ model }: Parts) => {
    const from = await together(group, () => (group.rank === 0 ? modelFolderOf(initFrom) : ""));
    await together(group, async () => {
      if (group.rank > 0) return;
      if (!newHead) await checkHead(from[0]!, model);
    });
    await loadWeightsOn(0, from[0]!, model, group, newHead ? withNewHead(model) : model);
    if (newHead) notes.push(`new, with random values: ${headOf(model)}`);
    const isTokenizer = (recipe.data as { tokenizer?: string }).tokenizer === weights?.tokenizer;
    if (group.rank === 0) notes.push(...keepInitialFiles(from[0]!, folder, { tokenizer: isTokenizer }));
    return meaningsIn(weights?.config ?? {}, { classes: !newHead, tokens: isTokenizer });
  };
  notes.push(`the weights are those of ${initFrom}`);
  if (weights) notes.push(...remarksOnWeights(weights, recipe, isOfRecipeHere(args) ? "of a recipe here" : "given"));
  return new Run(place, group, { notes, restore });
}

/** Whether the learning rate is that of a recipe in apps/train/recipes. */
const isOfRecipeHere = ({ recipe, overrides }: RunArguments) =>
  (recipe === undefined || /^[\w-]+$/.test(recipe)) && !overrides.some((each) => /^(--)?optimizer(\.lr)?=/.test(each));

async function resumeRun(
  resume: string,
  { overrides }: RunArguments,
  group: Group,
  passedOver: readonly string[] = [],
): Promise<Run> {
  const damaged = (error: unknown): never => {
    throw error instanceof CheckpointError ? new DamagedSave(error.message) : error;
  };
  const { manifest, recipeText } = await findSave(resume, group).catch(damaged);
  const { run } = locateRun(resume);
  const { saved, before, recipe } = resumedRecipe(manifest, recipeText, overrides, run);
  checkShards({ ranks: manifest.ranks, saved }, recipe, group);
  const place = await placeOf(run, recipe, group, manifest.step);
  const reader = await gatherSave(run, manifest, place.lock, group).catch((error: unknown) => {
    leave(place);
    return damaged(error);
  });
  const restore = (parts: Parts) => restoreSave(run, manifest, parts, { reader, group });
  const known = remarksOn(before);
  const remarks = remarksOn(recipe).filter((remark) => !known.includes(remark));
  const notes = [
    ...passedOver,
    ...changesOf(before, recipe),
    ...remarks,
    ...otherRanks({ ranks: manifest.ranks, saved }, recipe, group),
  ];
  return new Run(place, group, { step: manifest.step, sums: manifest.sums, notes, restore });
}

interface Saved {
  readonly ranks: number;
  readonly saved: Recipe;
}

/** Shards are cut anew for another number of ranks alone, and only where there were shards and are. */
function checkShards({ ranks, saved }: Saved, { parallel }: Recipe, { size }: Group): void {
  const [from, to] = [saved.parallel.weight, parallel.weight];
  if (from === to || (ranks !== size && from > 1 && to > 1)) return;
  const why =
    ranks === size
      ? "as many ranks keep their shards"
      : "a matrix is not cut into shards, and shards are not put together";
  throwRefusals([{ key: "parallel.weight", from: String(from), to: String(to), why }]);
}

function otherRanks({ ranks, saved }: Saved, { accumulate, data }: Recipe, { size }: Group): string[] {
  if (ranks === size) return [];
  const [before, now] = [ranks * saved.accumulate * saved.data.batchSize, size * accumulate * data.batchSize];
  const rows =
    before === now ? `${now} rows a step as before` : `${now} rows a step, before ${before}; accumulate changes that`;
  return [
    `saved by ${ranks} ${ranks === 1 ? "rank" : "ranks"}, goes on with ${size}: ${rows}`,
    carriedText(ranks, size),
  ];
}

function carriedText(from: number, to: number): string {
  if (from === 1) return "each rank takes the momenta and errors of the one rank";
  const mean = `the mean of the ${from} ranks' own momenta and errors`;
  return to === 1
    ? `the rank takes ${mean}, and adds the errors that belonged to parts of the model`
    : `each rank takes ${mean}, and the errors that belong to parts of the model are shared out anew`;
}

/** The folder on every rank's disk, with a lock, for a run that goes on from `step`. Rank 0 keeps its own. */
async function placeOf(run: string, recipe: Recipe, group: Group, step = 0): Promise<Place> {
  const [start] = (await together(group, () => randomBytes(8).toString("hex"))) as [string, ...string[]];
  const take = async () => {
    makeFolder(run);
    return lockFolder(run, { start, rank: group.rank }, (why) => print(why, process.stderr));
  };
  let lock = group.rank === 0 ? take() : undefined;
  await together(group, async () => void (await lock));
  lock ??= take();
  await together(group, async () => void (await lock));
  const saves = new Set(saveFoldersIn(run).filter((each) => each <= step));
  return { run, recipe, lock: await lock, saves };
}

function leave({ run, lock }: Place): void {
  lock[Symbol.dispose]();
  try {
    rmdirSync(run);
  } catch {
    // it is not empty
  }
}

function unwrittenText(run: string, why: string | undefined): string {
  const path = join(run, lockFile);
  return why === undefined
    ? `${path} is written again`
    : `${path} cannot be written: ${why}; the run goes on and tries again. If that lasts, a start elsewhere takes this run for ended.`;
}

/** What a run has written before its first save. */
const isBeforeFirstSave = (name: string) =>
  isTraceFile(name) || name === initialFiles || /^(recipe\.json|metrics\.jsonl|tensorboard|\..*\.tmp)$/.test(name);

/** Makes a new folder for this run. */
function claimFolder({ out, recipe, resume, logDir }: RunArguments): string {
  if (out !== undefined) {
    const folder = resolve(out);
    makeFolder(folder);
    const mayBeThere = (name: string) =>
      name === lockFile ||
      (resume === "auto" && isBeforeFirstSave(name)) ||
      (logDir !== undefined && join(folder, name) === resolve(logDir));
    if (!readdirSync(folder).every(mayBeThere))
      throw new CheckpointError(
        `${folder} is not empty, and a run needs its own folder: choose another --out, or continue the run in it with --resume`,
      );
    return folder;
  }
  const name = basename(recipe ?? defaultRecipe.pathname).replace(/\.ya?ml$/, "");
  const time = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  for (let i = 1; ; i++) {
    const folder = resolve(runsFolder, `${name}-${time}${i > 1 ? `-${i}` : ""}`);
    if (existsSync(folder)) continue;
    makeFolder(folder);
    return folder;
  }
}
