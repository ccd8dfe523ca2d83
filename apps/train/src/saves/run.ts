/** One run: its folder, which it alone writes to, where it began, and its saves. */

import { join } from "node:path";
import { atomicWriteText, CheckpointError } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { print } from "@terse/options";
import type { Validated } from "../best-so-far.ts";
import { sentence } from "../failure.ts";
import type { Line } from "../monitoring/numbers-of.ts";
import type { Parts } from "../parts.ts";
import type { Recipe } from "../recipe.ts";
import { tellLauncher } from "../to-launcher.ts";
import { checkSpace } from "./disk-space.ts";
import { Metrics, type Sums } from "./metrics.ts";
import { onEveryRank } from "./on-every-rank.ts";
import { offerResume, resumeOffer } from "./resume-command.ts";
import { leaveFolder, unwrittenText } from "./run-folder.ts";
import { NotFiniteError } from "./save-files.ts";
import { recipeFile, removeLeftovers } from "./save-folder.ts";
import { ThreadWriter } from "./thread-writer.ts";
import { copyState, type Place, type Restored, type SavedParts, writeCopy } from "./write-save.ts";

/** Where a run begins, and how its parts get there. */
export interface Beginning {
  readonly step?: number; // of the save that it goes on from
  readonly sums?: Sums | undefined; // of that save
  readonly validated?: Validated | undefined; // of that save
  readonly notes?: readonly string[];
  /** Resolves to what saves say of where the model came from. */
  readonly restore?: (parts: Parts) => Promise<Restored>;
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
  /** What the save that it goes on from says of the evaluations before it. */
  readonly validatedBefore: Validated | undefined;
  /** Is given each line of metrics.jsonl, on rank 0. */
  reader: ((line: Line) => void) | undefined;
  /** Prints a line of what cannot be written, on rank 0. */
  note: (text: string) => void = (text) => print(text, process.stderr);
  /** Gives what a save says of the evaluations before it. */
  validated: (() => Validated | undefined) | undefined;
  /** Flags without which a run that goes on would end again at once. */
  goesOnWith: readonly string[] = [];
  /** Gives what a save says of the steps before it, on rank 0. */
  sums: (() => Sums) | undefined;
  readonly #notes: readonly string[];
  #ofMetrics: string | undefined; // what of metrics.jsonl could not be read
  readonly #place: Place;
  readonly #group: Group;
  readonly #before: Sums | undefined;
  readonly #restore: (parts: Parts) => Promise<Restored>;
  readonly #metrics: Metrics;
  readonly #writer = new ThreadWriter();
  /** For messages about saves, which travel beside those of the steps. */
  #beside: Group | undefined;
  #parts: SavedParts | undefined;
  #underWay: Promise<void> | undefined; // the save that is being written
  #broken: unknown; // an error that is no failure of a save: the group's
  #savedStep: number | undefined;

  constructor(
    place: Place,
    group: Group,
    { step, sums, validated, notes = [], restore = async () => ({}) }: Beginning,
  ) {
    this.folder = place.run;
    this.recipe = place.recipe;
    this.step = step ?? 0;
    this.validatedBefore = validated;
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
    this.#parts = { ...parts, ...(await this.#restore(parts)) };
    this.#beside = this.#group.size > 1 ? await this.#group.split(0) : this.#group;
    if (this.#place.lock.keeper === this.#group.rank) removeLeftovers(this.folder);
    await checkSpace(this.#place, parts, this.#group);
    await onEveryRank(this.#group, async () => {
      if (this.#group.rank > 0) return;
      this.#ofMetrics = await this.#metrics.cutAt(this.step);
      await atomicWriteText(join(this.folder, recipeFile), `${JSON.stringify(this.recipe, undefined, 2)}\n`);
    });
    if (this.#group.rank === 0) tellLauncher({ run: this.folder });
    if (this.#savedStep !== undefined) this.#offerResume(this.#savedStep);
  }

  /** What the user should know of how it begins, a line each. */
  get notes(): readonly string[] {
    return this.#ofMetrics === undefined ? this.#notes : [...this.#notes, this.#ofMetrics];
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
   * Copies the run after `step` steps when the save before it has been written, and writes the copy while the run goes
   * on. `failed` is called where it could not be saved, on all ranks.
   */
  async beginSave(step: number, failed: (failure: SaveFailure) => void): Promise<void> {
    await this.#complete();
    if (step === this.#savedStep) return this.#offerResume(step);
    const [validated, sums] = [this.validated?.(), this.sums?.()];
    const copy = await copyState(step, this.recipe, this.#parts!, this.#group.rank, this.#writer.spare);
    const write = async () => {
      try {
        await writeCopy({ ...copy, validated, sums }, this.#place, this.#beside!, this.#writer);
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
    offerResume(resumeOffer(this.folder, { step, steps: this.recipe.steps, ranks: this.#group.size }, this.goesOnWith));
  }

  /**
   * Waits for the save that is under way. Then other runs may use the folder; one in which nothing has been written is
   * removed.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.written();
    await this.#writer[Symbol.asyncDispose]();
    if (this.#beside !== this.#group) await this.#beside?.close();
    this.#metrics[Symbol.dispose]();
    leaveFolder(this.#place);
  }
}
