import { expect, it } from "vitest";
import { crop, flip } from "./crop-and-flip.ts";

const [height, width] = [4, 5];
const data = Uint8Array.from({ length: height * width * 3 }, (_, i) => i + 1);
const pixels = { data, height, width };

it("crops every place of the picture with a black border", () => {
  for (const padding of [1, 2, 6])
    for (let top = 0; top <= 2 * padding; top++)
      for (let left = 0; left <= 2 * padding; left++) {
        const cropped = crop(pixels, padding, top, left).data;
        for (let y = 0; y < height; y++)
          for (let x = 0; x < width; x++)
            for (let c = 0; c < 3; c++) {
              const [row, column] = [y + top - padding, x + left - padding];
              const inside = row >= 0 && row < height && column >= 0 && column < width;
              expect(cropped[(y * width + x) * 3 + c]).toBe(inside ? data[(row * width + column) * 3 + c] : 0);
            }
      }
  expect(crop(pixels, 2, 2, 2).data).toEqual(data);
});

it("flips left to right", () => {
  const flipped = flip(pixels);
  expect([...flipped.data.subarray(0, 6)]).toEqual([13, 14, 15, 10, 11, 12]);
  expect(flip(flipped).data).toEqual(data);
});
