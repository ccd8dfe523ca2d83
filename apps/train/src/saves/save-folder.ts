/**
 * The folder of a run, and the saves in it:
 *
 *   recipe.json      the recipe with every default filled in
 *   metrics.jsonl    one line per logged step
 *   initial-files/   the tokenizer, and how the weights that it began with generate (initial-files.ts)
 *   lock.json        who writes there, while somebody does (folder-lock.ts)
 *   step-N/          a save: config.json and model.safetensors (PyTorch's names), state-rank-R.safetensors of each
 *                    rank, and manifest.json, which describes these files
 *   step-N/average/  the model with the average of its weights, where the recipe has one
 *
 * Where machines have their own disks, each has the files of its ranks; rank 0 writes recipe, metrics, weights and
 * manifest.
 */
import { readdirSync, rmSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import {
  CheckpointError,
  type FileRecord,
  isObject,
  type Manifest,
  manifestFile,
  mayExist,
  parseManifest,
  readManifestText,
  readSmallText,
} from "@terse/checkpoint";
import type { DatasetState } from "@terse/data";
import type { Validated } from "../best-so-far.ts";
import type { Recipe } from "../recipe.ts";
import type { Sums } from "./metrics.ts";

export interface SaveManifest extends Manifest {
  readonly step: number;
  readonly rounds?: readonly number[]; // until then, of each fragment of local steps
  readonly ranks: number;
  readonly recipe: Recipe;
  readonly data: DatasetState; // the position in the data
  readonly validated?: Validated; // by the evaluations before it, and of its own step
  readonly bestSave?: BestSave; // of all saves, with this one
  readonly sums?: Sums; // of the steps before it; without, those of the last line of metrics
  readonly files: readonly SavedFile[];
}

/** The save with the lowest validation loss. The lowest loss of all may be that of a step that could not be saved. */
export interface BestSave {
  readonly step: number;
  readonly loss: number;
}

export interface SavedFile extends FileRecord {
  readonly rank: number; // that wrote it
  readonly host: string; // where it did
}

/** The folder of runs without --out. */
export const runsFolder = "runs";
export const recipeFile = "recipe.json";
export const stateFile = (rank: number) => `state-rank-${rank}.safetensors`;
export const isStateFile = (name: string): boolean => /^state-rank-\d+\.safetensors$/.test(name);
/** In a save, the model with the average of its weights. */
export const averageFolder = "average";
export const isOfAverage = ({ name }: FileRecord): boolean => name.startsWith(`${averageFolder}/`);
export const saveFolder = (run: string, step: number) => join(run, `step-${step}`);
/** A save that is being written. */
export const unfinishedFolder = (run: string, step: number) => join(run, `.step-${step}.tmp`);

/** What a path names: which of a run's saves, the newest where it names none. */
export interface Named {
  readonly run: string; // folder
  readonly save: number | "best" | undefined;
  /** The path names the average of the weights, in a save or in the newest save of a run. */
  readonly isAverage: boolean;
}

/**
 * What the path of a run or of one of its saves names. RUN/best names the best save, RUN/average and RUN/step-N/average
 * the average of the weights, unless there is such a folder on this disk.
 */
export function namedBy(path: string): Named {
  const at = resolve(path);
  const above = dirname(at);
  const isAverage = basename(at) === averageFolder && (mayExist(join(above, manifestFile)) || !mayExist(at));
  if (isAverage) return { ...namedBy(above), isAverage };
  if (basename(at) === "best" && !mayExist(at)) return { run: above, save: "best", isAverage };
  const save = stepOfName(basename(at));
  return { run: save === undefined ? at : above, save, isAverage };
}

/** `namedBy`, with the step of the save where the path names one. Throws `CheckpointError`, as `bestStep`. */
export function locateRun(path: string): Pick<Named, "run" | "isAverage"> & { readonly step: number | undefined } {
  const { run, save, isAverage } = namedBy(path);
  const saves = save === "best" ? savesIn(run) : [];
  const newest = saves.at(-1);
  const best = newest === undefined ? undefined : bestStep(run, readSave(saveFolder(run, newest)).manifest, saves);
  return { run, step: save === "best" ? best : save, isAverage };
}

/**
 * The step of a run's best save, as its newest one knows it. Throws `CheckpointError` where no save is known as the
 * best, or where that is not one of `saves`.
 */
export function bestStep(run: string, newest: SaveManifest, saves: readonly number[]): number {
  const best = newest.bestSave ?? newest.validated?.best;
  const folder = saveFolder(run, newest.step);
  if (best === undefined)
    throw new CheckpointError(
      `${folder} does not say which save is the best: the run has not been evaluated after a step, or nothing was held out; name a save, such as ${folder}`,
    );
  if (!saves.includes(best.step))
    throw new CheckpointError(
      `the best save of ${run}, after ${best.step} steps, is not there any more: set save.best to keep it, or name another save, such as ${folder}`,
    );
  return best.step;
}

const mostRecipeBytes = 1 << 24;

/** The text of a run's recipe.json; undefined where there is none. Throws `CheckpointError`. */
export function readRecipeText(run: string): string | undefined {
  const path = join(run, recipeFile);
  return mayExist(path) ? readSmallText(path, mostRecipeBytes) : undefined;
}

/** The steps of a run's complete saves on this disk, in ascending order, also of those that cannot be read now. */
export function savesIn(run: string): number[] {
  return saveFoldersIn(run).filter((step) => mayExist(join(saveFolder(run, step), manifestFile)));
}

/** The step of the newest complete save; undefined where there is none, or the run is closed to this user. */
export function newestSeen(run: string): number | undefined {
  try {
    return savesIn(run).at(-1);
  } catch {
    return undefined;
  }
}

/** The steps of all saves in a run's folder, also of those without a manifest: only rank 0's machine has manifests. */
export function saveFoldersIn(run: string): number[] {
  const names = statSync(run, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(run) : [];
  return names.flatMap((name) => stepOfName(name) ?? []).sort((a, b) => a - b);
}

/** The step of a save, by the name of its folder. */
export function stepOfName(name: string): number | undefined {
  const [, digits] = /^step-(\d+)$/.exec(name) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/**
 * The folder and the manifest of the save that `path` names: a save, or the newest one of a run. Throws
 * `CheckpointError`, with the text `absent` where there is none.
 */
export function readSave(path: string, absent = noSave): { folder: string; manifest: SaveManifest } {
  const { run, step = savesIn(run).at(-1) } = locateRun(path);
  const text = step === undefined ? undefined : readManifestText(saveFolder(run, step));
  if (step === undefined || text === undefined) throw absent(path);
  const folder = saveFolder(run, step);
  return { folder, manifest: parseSave(text, join(folder, manifestFile)) };
}

/**
 * Reads the manifest of a save; `path` names its text in errors. Throws `CheckpointError` where a key is missing or has
 * a wrong type.
 */
export function parseSave(text: string, path: string): SaveManifest {
  const manifest = parseManifest<SaveManifest>(text, path);
  const { step, rounds, ranks, recipe, data, validated, bestSave, sums, files } = manifest as {
    [key in keyof SaveManifest]: unknown;
  };
  const isCount = (value: unknown, least: number) => Number.isSafeInteger(value) && (value as number) >= least;
  const isCounts = (value: unknown) => Array.isArray(value) && value.every((each) => isCount(each, 0));
  const isFile = ({ rank, host }: { rank?: unknown; host?: unknown }) =>
    isCount(rank, 0) && (rank as number) < (ranks as number) && typeof host === "string";
  const isRight: readonly (readonly [what: string, right: boolean])[] = [
    ["step is not an integer ≥ 0", isCount(step, 0)],
    ["rounds are not integers ≥ 0", rounds === undefined || isCounts(rounds)],
    ["ranks is not an integer ≥ 1", isCount(ranks, 1)],
    ["recipe is not an object", isObject(recipe)],
    ["data is not an object", isObject(data)],
    ["validated is not an object", validated === undefined || isObject(validated)],
    ["bestSave is not an object", bestSave === undefined || isObject(bestSave)],
    ["sums is not an object", sums === undefined || isObject(sums)],
    ["files do not each have a rank below ranks, and a host", (files as object[]).every(isFile)],
  ];
  const [wrong] = isRight.find(([, right]) => !right) ?? [];
  if (wrong !== undefined) throw new CheckpointError(`${path}: ${wrong}; use another save.`);
  for (let rank = 0; rank < manifest.ranks; rank++)
    if (!manifest.files.some(({ name }) => name === stateFile(rank)))
      throw new CheckpointError(`${path} lists no ${stateFile(rank)}, though ranks is ${ranks}; use another save.`);
  return manifest;
}

export const noSave = (path: string) =>
  new CheckpointError(
    namedInstead(path) ??
      `${path} has no saved run (no step-N/${manifestFile}); name the folder of a run that has been saved`,
  );

/** A sentence where this disk has what its ranks wrote of saves, and what rank 0 wrote is on another machine. */
export function partOfSaves(run: string): string | undefined {
  const steps = saveFoldersIn(run);
  const isPart = (folder: string) => statSync(folder).isDirectory() && readdirSync(folder).some(isStateFile);
  if (savesIn(run).length > 0 || !steps.some((step) => isPart(saveFolder(run, step)))) return undefined;
  return `${run} has only what this machine's ranks wrote of ${steps.map((step) => `step-${step}`).join(", ")}: weights and manifest are on the machine where rank 0 was; take part on that machine, or copy them`;
}

/**
 * A sentence where the path is a folder of several runs, such as a sweep, a save that its run does not have, or a part
 * of a run on several machines.
 */
export function namedInstead(path: string): string | undefined {
  const { run, save } = namedBy(path);
  const saves = savesIn(run);
  const part = partOfSaves(run);
  if (part !== undefined) return part;
  if (typeof save === "number" && saves.length > 0)
    return `${path} is no save: ${run} has ${saves.map((step) => `step-${step}`).join(", ")}; name one of these`;
  if (save !== undefined || !statSync(run, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const within = readdirSync(run, { withFileTypes: true }).filter((each) => each.isDirectory());
  const one = within.find(({ name }) => newestSeen(join(run, name)) !== undefined);
  return one && `${path || '""'} is no run, and has runs in it: name one of them, such as ${join(path, one.name)}`;
}

/** Whether a save has an average of the weights. */
export const hasAverage = ({ files }: SaveManifest): boolean => files.some(isOfAverage);

/** Removes what ended processes have left unfinished. */
export function removeLeftovers(run: string): void {
  for (const folder of [run, ...saveFoldersIn(run).map((step) => saveFolder(run, step))])
    for (const name of readdirSync(folder)) if (name.endsWith(".tmp")) remove(join(folder, name));
}

/**
 * Removes all saves but the last `keep` of `current`, and the `best` one: the others are older, or belong to steps that
 * were taken again. What cannot be removed now is removed after a later save.
 */
export async function removeOldSaves(
  run: string,
  current: ReadonlySet<number>,
  keep: number,
  best?: number,
): Promise<void> {
  try {
    const steps = saveFoldersIn(run);
    const own = steps.filter((step) => current.has(step));
    const kept = own.slice(-keep);
    for (const step of steps)
      if (!kept.includes(step) && !(step === best && own.includes(step)))
        await rm(saveFolder(run, step), { recursive: true, force: true }).catch(() => {});
  } catch {
    // the folder cannot be read now
  }
}

/** What cannot be removed now is removed when the run goes on. */
export function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // its disk does not answer now
  }
}
