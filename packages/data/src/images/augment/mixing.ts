/**
 * Mixup, Zhang et al. 2018, https://arxiv.org/abs/1710.09412, and CutMix, Yun et al. 2019,
 * https://arxiv.org/abs/1905.04899: a picture and a part of another one, with the labels of both. The other picture is
 * any training image. In the papers it is one of the same batch; rows would then depend on how a batch is split between
 * ranks.
 */
import type { RandomNumbers } from "../../random.ts";
import { type Box, boxAbout } from "./cutout.ts";
import { exponential, naturalLogarithm } from "./elementary.ts";

/**
 * λ ~ Beta(α, α) by Jöhnk's rejection: X = U^(1/α), Y = V^(1/α), accepted where 0 < X + Y ≤ 1, gives X / (X + Y). It
 * takes 2 tries on average at α = 1, and 70 at α = 4.
 */
export function symmetricBeta(alpha: number, random: RandomNumbers): number {
  for (;;) {
    const [x, y] = [power(random.uniform(), alpha), power(random.uniform(), alpha)];
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
}

const power = (u: number, alpha: number) => (u === 0 ? 0 : exponential(naturalLogarithm(u) / alpha));

/** image ← λ image + (1 − λ) other */
export function mixup(image: Float32Array, other: Float32Array, lambda: number): void {
  for (let i = 0; i < image.length; i++) image[i] = lambda * image[i]! + (1 - lambda) * other[i]!;
}

/** Equation 2: a box of √(1 − λ) of both sides, about a point anywhere; what is outside of the picture is cut off. */
export function cutmixBox(lambda: number, H: number, W: number, random: RandomNumbers): Box {
  const side = Math.sqrt(1 - lambda);
  const [y, x] = [random.below(H), random.below(W)];
  return boxAbout(y, x, Math.floor(H * side), Math.floor(W * side), H, W);
}

/** Copies `box` of (3, H, W) from `other`. Returns the share of the picture that stays. */
export function cutmix(image: Float32Array, other: Float32Array, H: number, W: number, box: Box): number {
  for (let channel = 0; channel < 3; channel++)
    for (let y = box.top; y < box.bottom; y++) {
      const row = (channel * H + y) * W;
      image.set(other.subarray(row + box.left, row + box.right), row + box.left);
    }
  return 1 - ((box.bottom - box.top) * (box.right - box.left)) / (H * W);
}
