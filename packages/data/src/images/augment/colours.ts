/**
 * Colour operations with Pillow's arithmetic (ImageEnhance, ImageOps). AutoAugment and RandAugment then give
 * torchvision's pictures.
 */
import { byTable, histogram, luma, type Pixels } from "./pixels.ts";

/** from + factor · (picture − from), in 32-bit floats, without the fraction. Factor 1 keeps the picture. */
function away(from: Uint8Array, { data, height, width }: Pixels, factor: number): Pixels {
  const alpha = Math.fround(factor);
  const blended = new Uint8ClampedArray(data.length);
  for (let i = 0; i < data.length; i++) {
    const value = Math.fround(from[i]! + Math.fround(alpha * (data[i]! - from[i]!)));
    blended[i] = Math.floor(value); // clamped to 0 … 255
  }
  return { data: new Uint8Array(blended.buffer), height, width };
}

/** A grey picture as one of three channels. */
const grey = (values: Uint8Array) =>
  Uint8Array.from({ length: values.length * 3 }, (_, i) => values[Math.floor(i / 3)]!);

export const brightness = (pixels: Pixels, factor: number) => away(new Uint8Array(pixels.data.length), pixels, factor);

/** Saturation. */
export const colour = (pixels: Pixels, factor: number) => away(grey(luma(pixels)), pixels, factor);

export function contrast(pixels: Pixels, factor: number): Pixels {
  const values = luma(pixels);
  const mean = Math.floor(values.reduce((sum, value) => sum + value, 0) / values.length + 0.5);
  return away(new Uint8Array(pixels.data.length).fill(mean), pixels, factor);
}

export const sharpness = (pixels: Pixels, factor: number) => away(smooth(pixels), pixels, factor);

/** Each pixel and its eight neighbours, the pixel itself five times, divided by 13 and rounded. The border stays. */
function smooth({ data, height, width }: Pixels): Uint8Array {
  const smoothed = data.slice();
  const row = width * 3;
  for (let y = 1; y < height - 1; y++)
    for (let i = y * row + 3; i < y * row + row - 3; i++) {
      let sum = 4 * data[i]!;
      for (const above of [i - row, i, i + row]) sum += data[above - 3]! + data[above]! + data[above + 3]!;
      smoothed[i] = Math.floor((2 * sum + 13) / 26);
    }
  return smoothed;
}

/** Keeps the highest `bits` bits of each byte. */
export const posterize = (pixels: Pixels, bits: number) => byTable(pixels, (byte) => byte & (0xff << (8 - bits)));

/** Inverts what is at or above `threshold`. */
export const solarize = (pixels: Pixels, threshold: number) =>
  byTable(pixels, (byte) => (byte < threshold ? byte : 255 - byte));

export const invert = (pixels: Pixels) => byTable(pixels, (byte) => 255 - byte);

/** Stretches each channel to 0 … 255. */
export function autoContrast(pixels: Pixels): Pixels {
  const ranges = [0, 1, 2].map((channel) => {
    const counts = histogram(pixels, channel);
    const least = counts.findIndex((count) => count > 0);
    const most = counts.findLastIndex((count) => count > 0);
    const scale = most > least ? 255 / (most - least) : 1;
    return [scale, most > least ? -least * scale : 0] as const;
  });
  return byTable(pixels, (byte, channel) => Math.trunc(byte * ranges[channel]![0] + ranges[channel]![1]));
}

/** Makes the values of each channel equally frequent. */
export function equalize(pixels: Pixels): Pixels {
  const tables = [0, 1, 2].map((channel) => {
    const counts = histogram(pixels, channel);
    const last = counts.findLast((count) => count > 0)!;
    const step = Math.floor((pixels.height * pixels.width - last) / 255);
    if (step === 0) return Array.from(counts, (_, byte) => byte);
    let below = Math.floor(step / 2);
    return Array.from(counts, (count) => {
      const value = Math.floor(below / step);
      below += count;
      return value;
    });
  });
  return byTable(pixels, (byte, channel) => tables[channel]![byte]!);
}
