/** Where a rank computes. */
import { readWorldEnvironment } from "@terse/collectives";
import { algorithms } from "@terse/optimizers";
import { OptionsError } from "@terse/options";
import type { Recipe } from "./recipe.ts";

/** "cpu", or this rank's GPU: "cuda:1". Throws `OptionsError` where the optimizer cannot run on a GPU. */
export function deviceOf({ device, optimizer }: Recipe, env: NodeJS.ProcessEnv = process.env): string {
  if (device === "cpu") return device;
  const problem = algorithms[optimizer.name].cpuOnly(optimizer);
  if (problem !== undefined)
    throw new OptionsError([`device: ${device} sends votes only, and ${problem}; take device: cpu`]);
  return device === "cuda" ? `cuda:${readWorldEnvironment(env).localRank}` : device;
}
