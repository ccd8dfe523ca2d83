import { cat, type Tensor } from "../tensor.ts";

/** What turns pairs of dimensions by an angle that grows with the position; both (…, T, 1, e/2). */
export interface Rotation {
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/**
 * Rotary position embedding, Su et al. 2021, https://arxiv.org/abs/2104.09864, of the dimensions i and i + e/2:
 *
 *   (a, b) → (a cos − b sin, b cos + a sin)      x (B, T, h, e)
 */
export function rotate(x: Tensor, { cos, sin }: Rotation): Tensor {
  const [a, b] = x.split(x.shape.at(-1)! / 2, -1) as [Tensor, Tensor];
  return cat([a.mul(cos).addcmul(b, sin, { value: -1 }), b.mul(cos).addcmul(a, sin)], -1);
}
