/** A recipe's augmentations: how a training image is changed, as a function of the seed and the row's position. */
import { flag, nonNegativeInteger, oneOf, positiveInteger, v } from "@terse/options";
import type { RandomNumbers } from "../../random.ts";
import { autoAugment } from "./auto-augment.ts";
import { crop, flip } from "./crop-and-flip.ts";
import type { Pixels } from "./pixels.ts";
import { largestMagnitude, randAugment } from "./rand-augment.ts";

/** α of Beta(α, α); 0: not at all. */
const mixingStrength = v.optional(v.pipe(v.number(), v.finite(), v.minValue(0), v.maxValue(4)), 0);

/** Keys of a recipe's `data` section, in the order in which they are applied. */
export const augmentationOptions = v.object({
  crop: v.optional(nonNegativeInteger, 0), // pixels of border, from which a picture of the same size is cropped
  flip: v.optional(flag, false), // half of the pictures, left to right
  policy: v.optional(oneOf(["none", "autoaugment", "randaugment"]), "none"),
  randOperations: v.optional(positiveInteger, 2), // of randaugment, N
  randMagnitude: v.optional(v.pipe(nonNegativeInteger, v.maxValue(largestMagnitude)), 9), // of randaugment, M
  cutout: v.optional(nonNegativeInteger, 0), // side of the square, in pixels
  mixup: mixingStrength, // α
  cutmix: mixingStrength, // α; with both, half of the pictures have each
});
export type AugmentationOptions = v.InferOutput<typeof augmentationOptions>;

export const noAugmentation: AugmentationOptions = v.parse(augmentationOptions, {});

/** What is done before pixels are normalised. */
export function augmentPixels(pixels: Pixels, options: AugmentationOptions, random: RandomNumbers): Pixels {
  let result = pixels;
  if (options.crop > 0) {
    const [top, left] = [random.below(2 * options.crop + 1), random.below(2 * options.crop + 1)];
    result = crop(result, options.crop, top, left);
  }
  if (options.flip && random.chance(0.5)) result = flip(result);
  if (options.policy === "autoaugment") result = autoAugment(result, random);
  if (options.policy === "randaugment")
    result = randAugment(result, random, { operations: options.randOperations, magnitude: options.randMagnitude });
  return result;
}
