/** One rank process: joins the others, trains, and leaves. */
import { joinWorld } from "@terse/collectives";
import type { Arguments } from "./arguments.ts";
import { sentence } from "./failure.ts";
import { embedded, readRecipe } from "./recipe.ts";
import { train } from "./train.ts";

/** Whether a launcher (ours, torchrun, …) has made this process a rank. */
export function isRank(env: NodeJS.ProcessEnv): boolean {
  return env["RANK"] !== undefined && env["WORLD_SIZE"] !== undefined;
}

export async function runRank(args: Arguments): Promise<number> {
  // No orphans: a rank whose launcher is gone has nobody to train for.
  process.on("disconnect", () => process.exit(1));
  process.channel?.unref();

  const recipe = readRecipe(args.recipe ?? embedded, args.overrides);
  await using world = await joinWorld({ deadlineSeconds: args.deadline, config: JSON.stringify(recipe) });
  try {
    await train(recipe, world, args);
  } catch (error) {
    world.abort(sentence(error)); // the others stop at once, and say why
    throw error;
  }
  return 0;
}
