import { resolve } from "node:path";
import type { Group } from "@terse/collectives";
import type { Recipe } from "../recipe.ts";
import { DamagedSave, savedSteps } from "./find-save.ts";
import { newRun } from "./new-run.ts";
import { resumeRun } from "./resumed-run.ts";
import type { Run } from "./run.ts";
import type { RunArguments } from "./run-arguments.ts";
import { saveFolder } from "./save-folder.ts";

/**
 * A new run, or the one of `--resume`; with `--resume auto` the one in `--out`, if it has been saved. Its parts are
 * made by its recipe, and then `begin` sets them. Throws on all ranks alike.
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
