import type { Group } from "@terse/collectives";
import type { Recipe } from "../recipe.ts";
import { DamagedSave, folderOf, savedSteps } from "./find-save.ts";
import { newRun } from "./new-run.ts";
import { resumeRun } from "./resumed-run.ts";
import type { Run } from "./run.ts";
import type { RunArguments } from "./run-arguments.ts";
import { noSave, saveFolder } from "./save-folder.ts";

/**
 * A new run by its recipe; without one, the run that `--resume` goes on with: with `auto` the one in `--out`. Its parts
 * are made by its recipe, and then `begin` sets them. Throws on all ranks alike.
 */
export async function openRun(recipe: Recipe | undefined, group: Group, args: RunArguments): Promise<Run> {
  const { out, resume } = args;
  if (recipe !== undefined) return newRun(recipe, args, group);
  return resume === "auto" ? resumeIntact(await folderOf(out!, group), args, group) : resumeRun(resume!, args, group);
}

/** Goes on from the newest save that is intact. */
async function resumeIntact(folder: string, args: RunArguments, group: Group): Promise<Run> {
  const steps = await savedSteps(folder, group);
  const damaged: DamagedSave[] = [];
  for (const step of steps)
    try {
      const notes = damaged.map(({ message }, i) => `the save of step ${steps[i]} is passed over: ${message}`);
      return await resumeRun(saveFolder(folder, step), args, group, notes);
    } catch (error) {
      if (!(error instanceof DamagedSave)) throw error;
      damaged.push(error);
    }
  throw damaged[0] ?? noSave(folder);
}
