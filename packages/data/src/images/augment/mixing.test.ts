import { describe, expect, it } from "vitest";
import { RandomNumbers } from "../../random.ts";
import { boxAbout, cutout } from "./cutout.ts";
import { cutmix, cutmixBox, mixup, symmetricBeta } from "./mixing.ts";

describe("symmetricBeta", () => {
  it.each([0.2, 1, 2])("has mean ½, variance 1/(4 (2α + 1)) and excess kurtosis −6/(2α + 3) at α = %f", (alpha) => {
    const n = 20_000;
    const draws = Array.from({ length: n }, (_, i) => symmetricBeta(alpha, new RandomNumbers(1, i, "mixing")));
    const moment = (k: number) => draws.reduce((sum, x) => sum + (x - 0.5) ** k, 0) / n;
    const variance = 1 / (4 * (2 * alpha + 1));
    expect(Math.abs(moment(1))).toBeLessThan(4 * Math.sqrt(variance / n));
    expect(moment(2) / variance).toBeCloseTo(1, 1);
    expect(moment(4) / variance ** 2 - 3).toBeCloseTo(-6 / (2 * alpha + 3), 0.7);
    expect(Math.min(...draws)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...draws)).toBeLessThanOrEqual(1);
  });
});

it("mixup takes λ of the first image and 1 − λ of the second", () => {
  const image = Float32Array.of(1, 2, 3);
  mixup(image, Float32Array.of(5, 10, -1), 0.75);
  expect(image).toEqual(Float32Array.of(2, 4, 2));
});

it("CutMix copies a box of 1 − λ of the area, in all channels, and returns the share that stays", () => {
  const [H, W] = [6, 8];
  const [image, other] = [new Float32Array(3 * H * W).fill(1), new Float32Array(3 * H * W).fill(2)];
  const share = cutmix(image, other, H, W, { top: 1, bottom: 4, left: 2, right: 6 });
  expect(share).toBe(1 - 12 / 48);
  for (let i = 0; i < image.length; i++) {
    const [y, x] = [Math.floor(i / W) % H, i % W];
    expect(image[i]).toBe(y >= 1 && y < 4 && x >= 2 && x < 6 ? 2 : 1);
  }
  let area = 0;
  for (let i = 0; i < 2000; i++) {
    const box = cutmixBox(0.75, 32, 32, new RandomNumbers(2, i, "mixing"));
    expect(Math.max(box.bottom - box.top, box.right - box.left)).toBeLessThanOrEqual(16);
    expect(Math.min(box.top, box.left, 32 - box.bottom, 32 - box.right)).toBeGreaterThanOrEqual(0);
    area += ((box.bottom - box.top) * (box.right - box.left)) / 2000;
  }
  expect(area / 1024).toBeCloseTo(0.25 * (7 / 8) ** 2, 1); // a side that is cut off at the border is 7/8 on average
});

it("Cutout clears a square about a point in all channels, less at the border", () => {
  const image = new Float32Array(3 * 8 * 8).fill(1);
  cutout(image, 8, 8, boxAbout(0, 7, 4, 4, 8, 8));
  const cleared = [...image.entries()].filter(([, value]) => value === 0).map(([i]) => [Math.floor(i / 8) % 8, i % 8]);
  expect(cleared.length).toBe(3 * 2 * 3);
  for (const [y, x] of cleared) expect(y! < 2 && x! >= 5).toBe(true);
});
