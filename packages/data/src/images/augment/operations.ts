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

interface Operation {
  /** The operation at `share` ∈ [0, 1] of its range, negative where `sign` is −1. */
  apply(pixels: Pixels, share: number, sign: number): Pixels;
  /** Whether the sign of the magnitude is drawn. */
  readonly signed: boolean;
}

const signed = (apply: Operation["apply"]): Operation => ({ apply, signed: true });
const plain = (apply: (pixels: Pixels, share: number) => Pixels): Operation => ({ apply, signed: false });

/** The nearest integer, the even one of two. */
const rounded = (x: number) => (x % 1 === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));

export const operations = {
  Identity: plain((pixels) => pixels),
  ShearX: signed((pixels, share, sign) => shearX(pixels, sign * 0.3 * share)),
  ShearY: signed((pixels, share, sign) => shearY(pixels, sign * 0.3 * share)),
  TranslateX: signed((pixels, share, sign) => translateX(pixels, sign * (150 / 331) * pixels.width * share)),
  TranslateY: signed((pixels, share, sign) => translateY(pixels, sign * (150 / 331) * pixels.height * share)),
  Rotate: signed((pixels, share, sign) => rotate(pixels, sign * 30 * share)),
  Brightness: signed((pixels, share, sign) => brightness(pixels, 1 + sign * 0.9 * share)),
  Color: signed((pixels, share, sign) => colour(pixels, 1 + sign * 0.9 * share)),
  Contrast: signed((pixels, share, sign) => contrast(pixels, 1 + sign * 0.9 * share)),
  Sharpness: signed((pixels, share, sign) => sharpness(pixels, 1 + sign * 0.9 * share)),
  Posterize: plain((pixels, share) => posterize(pixels, 8 - rounded(4 * share))),
  Solarize: plain((pixels, share) => solarize(pixels, 255 - 255 * share)),
  AutoContrast: plain(autoContrast),
  Equalize: plain(equalize),
  Invert: plain(invert),
} satisfies Record<string, Operation>;

export type OperationName = keyof typeof operations;

export function applyOperation(name: OperationName, pixels: Pixels, share: number, sign: number): Pixels {
  return operations[name].apply(pixels, share, sign);
}
