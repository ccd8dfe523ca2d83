/** The operations of AutoAugment and RandAugment, with the range of each one's magnitude as torchvision has them. */
import {
  autoContrast,
  brightness,
  colour,
  contrast,
  equalize,
  invert,
  posterize,
  sharpness,
  solarize,
} from "./colours.ts";
import { rotate, shearX, shearY, translateX, translateY } from "./geometry.ts";
import type { Pixels } from "./pixels.ts";

/** An operation at `share` ∈ [0, 1] of its range, negative where `sign` is −1. Some have no range, or no sign. */
type Operation = (pixels: Pixels, share: number, sign: number) => Pixels;

/** The nearest integer, the even one of two. */
const rounded = (x: number) => (x % 1 === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));

export const operations = {
  Identity: (pixels) => pixels,
  ShearX: (pixels, share, sign) => shearX(pixels, sign * 0.3 * share),
  ShearY: (pixels, share, sign) => shearY(pixels, sign * 0.3 * share),
  TranslateX: (pixels, share, sign) => translateX(pixels, sign * (150 / 331) * pixels.width * share),
  TranslateY: (pixels, share, sign) => translateY(pixels, sign * (150 / 331) * pixels.height * share),
  Rotate: (pixels, share, sign) => rotate(pixels, sign * 30 * share),
  Brightness: (pixels, share, sign) => brightness(pixels, 1 + sign * 0.9 * share),
  Color: (pixels, share, sign) => colour(pixels, 1 + sign * 0.9 * share),
  Contrast: (pixels, share, sign) => contrast(pixels, 1 + sign * 0.9 * share),
  Sharpness: (pixels, share, sign) => sharpness(pixels, 1 + sign * 0.9 * share),
  Posterize: (pixels, share) => posterize(pixels, 8 - rounded(4 * share)),
  Solarize: (pixels, share) => solarize(pixels, 255 - 255 * share),
  AutoContrast: autoContrast,
  Equalize: equalize,
  Invert: invert,
} satisfies Record<string, Operation>;

export type OperationName = keyof typeof operations;
