/** Where a rank computes. */
import { readWorldEnvironment } from "@terse/collectives";
import { OptionsError } from "@terse/options";
import type { Recipe } from "./recipe.ts";

/** "cpu", or the GPU of this rank: "cuda:1". */
export function deviceOf({ device, optimizer }: Recipe, env: NodeJS.ProcessEnv = process.env): string {
  if (device === "cpu") return device;
  const problem = onlyOnCpu(optimizer);
  if (problem !== undefined)
    throw new OptionsError([
      `device: on a GPU a rank's floats stay where they are and only votes travel, and ${problem}; take device: cpu`,
    ]);
  return device === "cuda" ? `cuda:${readWorldEnvironment(env).localRank}` : device;
}

/** What of an optimizer sends floats, or needs a kernel that only the CPU has. */
function onlyOnCpu(optimizer: Recipe["optimizer"]): string | undefined {
  const { name } = optimizer;
  if (name !== "lion-cub" && name !== "distributed-lion")
    return `${name} sends floats (lion-cub and distributed-lion do not)`;
  const { bits, momentumSync } = optimizer as { bits?: number; momentumSync?: { segments: unknown } };
  if (bits !== undefined && bits > 1) return "lion-cub quantizes on the CPU with more than one bit (optimizer.bits: 1)";
  if (momentumSync && momentumSync.segments !== "none")
    return "momenta are averaged as floats (optimizer.momentumSync.segments: none)";
  return undefined;
}
