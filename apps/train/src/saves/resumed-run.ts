import { CheckpointError, OutOfReachError } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { amountText } from "../format.ts";
import type { Parts } from "../parts.ts";
import { type Recipe, remarksOn } from "../recipe.ts";
import { changesOf, resumedRecipe, sameRounds, throwRefusals } from "../resumed-recipe.ts";
import { stepsBetweenRounds } from "../steps-between-rounds.ts";
import { DamagedSave, findSave, gatherSave } from "./find-save.ts";
import { restoreSave } from "./restore-save.ts";
import { Run } from "./run.ts";
import type { RunArguments } from "./run-arguments.ts";
import { enterFolder, leaveFolder } from "./run-folder.ts";

/** A run that goes on from the save that `resume` names. Throws `DamagedSave`. */
export async function resumeRun(
  resume: string,
  { overrides, base }: RunArguments,
  group: Group,
  passedOver: readonly string[] = [],
): Promise<Run> {
  const damaged = (error: unknown): never => {
    const isDamage = error instanceof CheckpointError && !(error instanceof OutOfReachError);
    throw isDamage ? new DamagedSave(error.message) : error;
  };
  const { run, manifest, recipeText } = await findSave(resume, group).catch(damaged);
  const { saved, before, recipe } = resumedRecipe(manifest, recipeText, overrides, run);
  checkShards({ ranks: manifest.ranks, saved }, recipe, group);
  const place = await enterFolder(run, recipe, group, manifest);
  const isCarried = manifest.ranks !== group.size || whoStepsAlone(saved) !== whoStepsAlone(recipe);
  const reader = await gatherSave(run, manifest, place.lock, group, isCarried).catch((error: unknown) => {
    leaveFolder(place);
    return damaged(error);
  });
  const restore = (parts: Parts) => restoreSave(run, manifest, parts, { reader, group, base, isCarried });
  const { step, sums, validated } = manifest;
  const kept = { step, sums, validated };
  const known = remarksOn(before);
  const remarks = remarksOn(recipe).filter((remark) => !known.includes(remark));
  const notes = [
    ...passedOver,
    ...changesOf(before, recipe),
    ...remarks,
    ...otherRanks({ ranks: manifest.ranks, saved }, recipe, group),
    ...otherRounds(saved, recipe),
    ...withoutRound(saved, recipe, step),
  ];
  return new Run(place, group, { ...kept, notes, restore });
}

/** Which ranks go by themselves between two rounds, as far as the recipe says; undefined without local steps. */
const whoStepsAlone = ({ local }: Recipe) => local && `${local.within} of ${local.ranksPerHost}`;

/** What becomes of the state where local steps begin or end, or other ranks step together. */
function otherRounds(saved: Recipe, recipe: Recipe): string[] {
  if (whoStepsAlone(saved) === whoStepsAlone(recipe)) return [];
  if (sameRounds(saved, recipe))
    return ["where other ranks step together than before, each goes on from the mean of what they had"];
  const { gradient } = saved.exchange;
  const anew = gradient ? `; ${gradient.name} begins anew, and what it had not sent yet is left behind` : "";
  return recipe.local
    ? [`local steps begin: every rank goes on by itself from the model, with the optimizer's state of before${anew}`]
    : [
        `local steps end: all ranks go on from the shared model, with the mean of their optimizers' states; what they had done alone since the last round is left behind${anew}`,
      ];
}

/** What a run leaves that takes no step, and so has no round at its end. */
function withoutRound(saved: Recipe, recipe: Recipe, step: number): string[] {
  const { sinceRound = 0 } = stepsBetweenRounds(saved, recipe, step) ?? {};
  if (recipe.steps > step || sinceRound === 0 || recipe.local?.fragments !== 1) return []; // with more, a round ends it
  return [
    `no step is left: the run ends between two rounds, with the model of the last one; what the ranks have done since then, in ${amountText(sinceRound, "step")}, stays in the save: give more --steps to share it`,
  ];
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
  return [`saved by ${amountText(ranks, "rank")}, goes on with ${size}: ${rows}`, carriedText(ranks, size)];
}

function carriedText(from: number, to: number): string {
  if (from === 1) return "each rank takes the momenta and errors of the one rank";
  const mean = `the mean of the ${from} ranks' own momenta and errors`;
  return to === 1
    ? `the rank takes ${mean}, and adds the errors that belonged to parts of the model`
    : `each rank takes ${mean}, and the errors that belong to parts of the model are shared out anew`;
}
