/**
 * Shear, translation and rotation with the nearest pixel, in fixed point with 16 fractional bits, as Pillow's
 * Image.transform.
 */
import { cosine, sine } from "./elementary.ts";
import type { Pixels } from "./pixels.ts";

/** The source of pixel (x, y) is (a x + b y + c, d x + e y + f). */
type Matrix = readonly [a: number, b: number, c: number, d: number, e: number, f: number];

const fixed = (x: number) => Math.floor(x * 65536 + 0.5);

/** Pixels from outside of the picture are black. */
function affine({ data, height, width }: Pixels, [a, b, c, d, e, f]: Matrix): Pixels {
  const moved = new Uint8Array(data.length);
  const [stepX, stepY] = [fixed(a), fixed(d)];
  for (let y = 0, at = 0; y < height; y++) {
    // (0, y), at the middle of the pixel
    let sourceX = fixed(c + a * 0.5 + b * 0.5) + y * fixed(b);
    let sourceY = fixed(f + d * 0.5 + e * 0.5) + y * fixed(e);
    for (let x = 0; x < width; x++, at += 3, sourceX += stepX, sourceY += stepY) {
      const [column, row] = [sourceX >> 16, sourceY >> 16];
      if (column < 0 || column >= width || row < 0 || row >= height) continue;
      const from = (row * width + column) * 3;
      for (let channel = 0; channel < 3; channel++) moved[at + channel] = data[from + channel]!;
    }
  }
  return { data: moved, height, width };
}

export const shearX = (pixels: Pixels, by: number) => affine(pixels, [1, by, 0, 0, 1, 0]);
export const shearY = (pixels: Pixels, by: number) => affine(pixels, [1, 0, 0, by, 1, 0]);
/** To the right by whole pixels; a fraction is dropped. */
export const translateX = (pixels: Pixels, by: number) => affine(pixels, [1, 0, -Math.trunc(by), 0, 1, 0]);
/** Downwards by whole pixels; a fraction is dropped. */
export const translateY = (pixels: Pixels, by: number) => affine(pixels, [1, 0, 0, 0, 1, -Math.trunc(by)]);

/** Against the clock about the middle; −180 to 180 degrees. */
export function rotate(pixels: Pixels, degrees: number): Pixels {
  const angle = (-degrees * Math.PI) / 180;
  const [cos, sin] = [cosine(angle), sine(angle)];
  const [x, y] = [pixels.width / 2, pixels.height / 2];
  return affine(pixels, [cos, sin, x - cos * x - sin * y, -sin, cos, y + sin * x - cos * y]);
}
