/**
 * RandAugment, Cubuk et al. 2020, https://arxiv.org/abs/1909.13719: N uniformly drawn operations, all of magnitude M of
 * 30.
 */
import type { RandomNumbers } from "../../random.ts";
import { type OperationName, operations } from "./operations.ts";
import type { Pixels } from "./pixels.ts";

/** The paper's 14 operations: all but Invert. */
export const randAugmentOperations = (Object.keys(operations) as OperationName[]).filter((name) => name !== "Invert");

export const largestMagnitude = 30;

export function randAugment(
  pixels: Pixels,
  random: RandomNumbers,
  { operations: count, magnitude }: { operations: number; magnitude: number },
): Pixels {
  let result = pixels;
  for (let i = 0; i < count; i++) {
    const name = randAugmentOperations[random.below(randAugmentOperations.length)]!;
    const sign = random.chance(0.5) ? -1 : 1;
    result = operations[name](result, magnitude / largestMagnitude, sign);
  }
  return result;
}
