/** Numbered images with labels, in memory or in files. */
import type { SampleFacts } from "../samples.ts";

export interface Images {
  readonly count: number;
  /** The label of image `i`: 0 … classes − 1. Throws `DataError`. */
  label(i: number): number;
  /** The pixels of image `i`, (H, W, 3) u8. Throws `CorruptImage`. */
  read(i: number): Promise<Uint8Array> | Uint8Array;
}

/** The training images, the held-out images, and what both have in common. */
export interface ImageSet extends Pick<SampleFacts, "source" | "fingerprint" | "classNames" | "inventory" | "remarks"> {
  readonly classes: number;
  readonly height: number;
  readonly width: number;
  /** Mean and standard deviation of red, green and blue, in pixels from 0 to 1. */
  readonly mean: readonly [number, number, number];
  readonly deviation: readonly [number, number, number];
  readonly training: Images;
  readonly validation: Images;
  /** Images that are known to be corrupt: what they are called, and why, by part and number. */
  readonly corrupt?: ReadonlyMap<string, string>;
  /** Closes files. */
  close?(): void;
}

/** An image of a part of the set, as a key: "training 3". */
export const keyOf = (part: "training" | "validation", i: number) => `${part} ${i}`;

/** An image that cannot be decoded: a dataset takes another one in its place. */
export class CorruptImage extends Error {
  override readonly name = "CorruptImage";
}

/** Images one after the other in one array. */
export function imagesInMemory(pixels: Uint8Array, labels: ArrayLike<number>, bytesEach: number): Images {
  return {
    count: labels.length,
    label: (i) => labels[i]!,
    read: (i) => pixels.subarray(i * bytesEach, (i + 1) * bytesEach),
  };
}
