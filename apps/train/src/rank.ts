/** One rank process: joins the world, trains, and closes its connections. */
import { endWithParent, type Group, joinWorld } from "@terse/collectives";
import { applyOverrides } from "@terse/options";
import type { TrainArguments } from "./arguments.ts";
import { openDeviceOf } from "./device.ts";
import { endOthers } from "./end-others.ts";
import { recipeFor } from "./recipe-for.ts";
import { checkSameRecipe } from "./same-recipe.ts";
import { folderOf, savedSteps } from "./saves/find-save.ts";
import { type InitialWeights, readInitialWeights } from "./saves/initial-weights.ts";
import { onEveryRank } from "./saves/on-every-rank.ts";
import { useSharedCores } from "./share-cores.ts";
import { hasLauncher } from "./to-launcher.ts";
import { train } from "./train.ts";

export async function runRank(args: TrainArguments): Promise<number> {
  // torchrun's agent, too, starts ranks in sessions of their own, which it leaves behind where it is killed.
  if (hasLauncher() || process.env["TORCHELASTIC_RUN_ID"] !== undefined) endWithParent();
  const recipeBefore = args.resume !== undefined || args.initFrom !== undefined ? undefined : recipeFor(args);
  await using world = await joinWorld({
    deadlineSeconds: args.deadline,
    outageSeconds: args.outage,
    emulateLink: args.emulateLink,
    engine: args.engine,
  });
  try {
    // A saved run's recipe, and the model of weights, come from the rank that has them.
    const goesOn = await isSaved(args, world);
    const weights = goesOn ? undefined : await initialWeights(args, world);
    const recipe = goesOn ? undefined : (recipeBefore ?? recipeFor(args, weights));
    await checkSameRecipe(recipe ?? applyOverrides({}, args.overrides), world);
    if (recipe) openDeviceOf(recipe); // before the run has a folder
    await useSharedCores(world);
    return await train(recipe, world, { ...args, weights });
  } catch (error) {
    await endOthers(world, error);
    throw error;
  }
}

/** Whether the run goes on: `--resume auto` does where the folder has a save on any rank's disk. */
async function isSaved({ resume, out }: TrainArguments, world: Group): Promise<boolean> {
  return resume === "auto" ? (await savedSteps(await folderOf(out!, world), world)).length > 0 : resume !== undefined;
}

/** What the folder of --init-from says, read on rank 0. */
async function initialWeights({ initFrom, base }: TrainArguments, world: Group): Promise<InitialWeights | undefined> {
  if (initFrom === undefined) return undefined;
  const [first] = await onEveryRank(world, () => (world.rank === 0 ? readInitialWeights(initFrom, base) : null));
  return first!;
}
