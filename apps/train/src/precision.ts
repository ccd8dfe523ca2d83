import { autocast } from "@terse/tensor";
import type { Recipe } from "./recipe.ts";

/** Runs a forward pass, and returns its results. */
export type Forward = <T>(pass: () => T extends Promise<unknown> ? never : T) => T;

/**
 * Forward in the recipe's precision; backward follows it. Parameters, gradients and the optimizer's state are always
 * f32.
 */
export function forwardIn({ precision, device }: Pick<Recipe, "precision" | "device">): Forward {
  if (precision === "f32") return inF32;
  const deviceType = device === "cpu" ? "cpu" : "cuda";
  return (pass) => autocast({ deviceType, dtype: precision }, pass);
}

export const inF32: Forward = (pass) => pass();
