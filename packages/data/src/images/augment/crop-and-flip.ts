/** What all papers on CIFAR do: a crop from the picture with a black border, and a flip of half of the pictures. */
import type { Pixels } from "./pixels.ts";

/**
 * The H × W pixels at (top, left) of the picture with `padding` black pixels on each side; 0 ≤ top, left ≤ 2 `padding`.
 */
export function crop({ data, height, width }: Pixels, padding: number, top: number, left: number): Pixels {
  const cropped = new Uint8Array(data.length);
  for (let y = 0; y < height; y++) {
    const from = y + top - padding;
    if (from < 0 || from >= height) continue;
    const first = Math.max(0, padding - left); // the columns that are inside the picture
    const end = Math.min(width, width + padding - left);
    if (first >= end) continue;
    const begin = (from * width + first + left - padding) * 3;
    cropped.set(data.subarray(begin, begin + (end - first) * 3), (y * width + first) * 3);
  }
  return { data: cropped, height, width };
}

export function flip({ data, height, width }: Pixels): Pixels {
  const flipped = new Uint8Array(data.length);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      for (let channel = 0; channel < 3; channel++)
        flipped[(y * width + x) * 3 + channel] = data[(y * width + width - 1 - x) * 3 + channel]!;
  return { data: flipped, height, width };
}
