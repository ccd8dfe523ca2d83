/**
 * Computed images, so that a model of images trains on a machine that has none. Class c has its own pattern of stripes
 * and its own colour. Position, width of stripes, brightness and noise differ from image to image. Integer arithmetic:
 * the same bytes on every machine.
 */
import { createHash } from "node:crypto";
import { RandomNumbers } from "../random.ts";
import { type ImageSet, type Images, imagesInMemory } from "./images.ts";

export interface MadeImagesOptions {
  readonly classes: number;
  readonly side?: number; // height and width in pixels
  readonly training?: number; // images
  readonly validation?: number;
}

export const madeForm = { mean: [0.5, 0.5, 0.5], deviation: [0.25, 0.25, 0.25] } as const;

export function madeImages({ classes, side = 32, training = 5000, validation = 1000 }: MadeImagesOptions): ImageSet {
  const hash = createHash("sha256");
  const part = (first: number, count: number): Images => {
    const pixels = new Uint8Array(count * side * side * 3);
    const labels = Array.from({ length: count }, (_, i) => i % classes);
    for (let i = 0; i < count; i++)
      draw(pixels.subarray(i * side * side * 3, (i + 1) * side * side * 3), labels[i]!, first + i, side);
    hash.update(pixels);
    return imagesInMemory(pixels, labels, side * side * 3);
  };
  const [train, heldOut] = [part(0, training), part(training, validation)];
  return {
    source: "made images (no data.path)",
    classes,
    height: side,
    width: side,
    ...madeForm,
    fingerprint: hash.digest("hex"),
    training: train,
    validation: heldOut,
  };
}

/** Directions of stripes, (dx, dy), of which class c has number c mod 5. */
const directions = [
  [4, 0],
  [0, 4],
  [3, 3],
  [3, -3],
  [4, 2],
] as const;

/** How the stripes change red, green and blue. No two are the same with the stripes shifted, which turns all signs. */
const colours = [
  [1, 1, 1],
  [1, -1, 1],
  [1, 1, -1],
  [1, -1, -1],
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
  [1, -1, 0],
] as const;

function draw(into: Uint8Array, label: number, number: number, side: number): void {
  const random = new RandomNumbers(0, number, "images");
  const [dx, dy] = directions[label % directions.length]!;
  const colour = colours[Math.floor(label / directions.length) % colours.length]!;
  const width = Math.floor(label / (directions.length * colours.length)); // of stripes: 0, 1, 2 for up to 120 classes
  const period = 24 + 24 * width + random.below(16); // in quarters of a pixel
  const phase = random.below(period);
  const brightness = 64 + random.below(96);
  const strength = 24 + random.below(72);
  for (let y = 0, at = 0; y < side; y++)
    for (let x = 0; x < side; x++) {
      const along = (((x * dx + y * dy + phase) % period) + period) % period;
      const stripe = 2 * along < period ? 1 : -1;
      let noise = random.word();
      for (let channel = 0; channel < 3; channel++, at++, noise >>>= 8)
        into[at] = Math.min(255, Math.max(0, brightness + strength * stripe * colour[channel]! + (noise & 63) - 32));
    }
}
