/** One rank process: joins the world, trains, and closes its connections. */
import { endWithParent, joinWorld } from "@terse/collectives";
import { useThreads } from "@terse/optimizers";
import { applyOverrides } from "@terse/options";
import { numThreads, setNumThreads } from "@terse/tensor";
import type { TrainArguments } from "./arguments.ts";
import { openDeviceOf } from "./device.ts";
import { endOthers } from "./end-others.ts";
import { recipeFor } from "./recipe-for.ts";
import { checkSameRecipe } from "./same-recipe.ts";
import { shareCores } from "./share-cores.ts";
import { hasLauncher } from "./to-launcher.ts";
import { train } from "./train.ts";

export async function runRank(args: TrainArguments): Promise<number> {
  // torchrun's agent, too, starts ranks in sessions of their own, which it leaves behind where it is killed.
  if (hasLauncher() || process.env["TORCHELASTIC_RUN_ID"] !== undefined) endWithParent();
  const isNamed = args.resume !== undefined && args.resume !== "auto";
  const recipe = isNamed ? undefined : recipeFor(args); // a saved run's recipe comes from the rank that has it
  await using world = await joinWorld({
    deadlineSeconds: args.deadline,
    outageSeconds: args.outage,
    emulateLink: args.emulateLink,
    engine: args.engine,
  });
  try {
    await checkSameRecipe(recipe ?? applyOverrides({}, args.overrides), world);
    if (recipe) openDeviceOf(recipe); // before the run has a folder
    const cores = await shareCores(world);
    if (!process.env["OMP_NUM_THREADS"]) setNumThreads(cores);
    useThreads(numThreads());
    return await train(recipe, world, args);
  } catch (error) {
    await endOthers(world, error);
    throw error;
  }
}
