/**
 * AutoAugment, Cubuk et al. 2019, https://arxiv.org/abs/1805.09501: two operations in a row, by the policy for
 * CIFAR-10.
 */
import type { RandomNumbers } from "../../random.ts";
import { type OperationName, operations } from "./operations.ts";
import type { Pixels } from "./pixels.ts";

type Choice = readonly [name: OperationName, probability: number, magnitude: number];

/** Table 7 of the paper. Magnitudes are 0 to 9; operations without one have 0. */
// biome-ignore format: a table
export const cifarPolicy: readonly (readonly [Choice, Choice])[] = [
  [["Invert", 0.1, 0], ["Contrast", 0.2, 6]],
  [["Rotate", 0.7, 2], ["TranslateX", 0.3, 9]],
  [["Sharpness", 0.8, 1], ["Sharpness", 0.9, 3]],
  [["ShearY", 0.5, 8], ["TranslateY", 0.7, 9]],
  [["AutoContrast", 0.5, 0], ["Equalize", 0.9, 0]],
  [["ShearY", 0.2, 7], ["Posterize", 0.3, 7]],
  [["Color", 0.4, 3], ["Brightness", 0.6, 7]],
  [["Sharpness", 0.3, 9], ["Brightness", 0.7, 9]],
  [["Equalize", 0.6, 0], ["Equalize", 0.5, 0]],
  [["Contrast", 0.6, 7], ["Sharpness", 0.6, 5]],
  [["Color", 0.7, 7], ["TranslateX", 0.5, 8]],
  [["Equalize", 0.3, 0], ["AutoContrast", 0.4, 0]],
  [["TranslateY", 0.4, 3], ["Sharpness", 0.2, 6]],
  [["Brightness", 0.9, 6], ["Color", 0.2, 8]],
  [["Solarize", 0.5, 2], ["Invert", 0, 0]],
  [["Equalize", 0.2, 0], ["AutoContrast", 0.6, 0]],
  [["Equalize", 0.2, 0], ["Equalize", 0.6, 0]],
  [["Color", 0.9, 9], ["Equalize", 0.6, 0]],
  [["AutoContrast", 0.8, 0], ["Solarize", 0.2, 8]],
  [["Brightness", 0.1, 3], ["Color", 0.7, 0]],
  [["Solarize", 0.4, 5], ["AutoContrast", 0.9, 0]],
  [["TranslateY", 0.9, 9], ["TranslateY", 0.7, 9]],
  [["AutoContrast", 0.9, 0], ["Solarize", 0.8, 3]],
  [["Equalize", 0.8, 0], ["Invert", 0.1, 0]],
  [["TranslateY", 0.7, 9], ["AutoContrast", 0.9, 0]],
];

export function autoAugment(pixels: Pixels, random: RandomNumbers): Pixels {
  let result = pixels;
  for (const [name, probability, magnitude] of cifarPolicy[random.below(cifarPolicy.length)]!) {
    const [happens, sign] = [random.chance(probability), random.chance(0.5) ? -1 : 1];
    if (happens) result = operations[name](result, magnitude / 9, sign);
  }
  return result;
}
