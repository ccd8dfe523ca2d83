/** Where a rank computes. */
import { readWorldEnvironment } from "@terse/collectives";
import type { Recipe } from "./recipe.ts";

/** "cpu", or this rank's GPU: "cuda:1". */
export function deviceOf({ device }: Recipe, env: NodeJS.ProcessEnv = process.env): string {
  return device === "cuda" ? `cuda:${readWorldEnvironment(env).localRank}` : device;
}
