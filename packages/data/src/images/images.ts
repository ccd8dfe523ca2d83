/** Numbered images with labels, in memory or in files. */
import { DataError } from "../data-error.ts";

export interface Images {
  readonly count: number;
  /** The label of image `i`: 0 … classes − 1. Throws `DataError`. */
  label(i: number): number;
  /** The pixels of image `i`, (H, W, 3) u8. Throws `CorruptImage`. */
  read(i: number): Promise<Uint8Array> | Uint8Array;
}

/** The training images, the held-out images, and what both have in common. */
export interface ImageSet {
  readonly source: string; // the path or name, for messages
  readonly classes: number;
  readonly height: number;
  readonly width: number;
  /** Mean and standard deviation of red, green and blue, in pixels from 0 to 1. */
  readonly mean: readonly [number, number, number];
  readonly deviation: readonly [number, number, number];
  readonly fingerprint: string; // SHA-256 of the files
  readonly training: Images;
  readonly validation: Images;
  /** Closes files. */
  close?(): void;
}

/** An image that cannot be decoded: a dataset takes another one in its place. */
export class CorruptImage extends Error {
  override readonly name = "CorruptImage";
}

/** More than the set share of images are corrupt; `last` is one of them, and why. */
export const tooManyCorrupt = (source: string, corrupt: number, images: number, last: string) =>
  new DataError(
    `${source}: ${corrupt} of ${images} images cannot be decoded, more than data.maxCorrupt allows; the last is ${last}.`,
  );

/** Images one after the other in one array. */
export function imagesInMemory(pixels: Uint8Array, labels: ArrayLike<number>, bytesEach: number): Images {
  return {
    count: labels.length,
    label: (i) => labels[i]!,
    read: (i) => pixels.subarray(i * bytesEach, (i + 1) * bytesEach),
  };
}
