/** The layout of attention with h heads, for models that name its layers themselves. */
import type { Tensor } from "../tensor.ts";

/** q, k and v, which stand side by side in the result of one layer:  (B, T, 3d) → three times (B, h, T, d/h) */
export function splitHeads(qkv: Tensor, heads: number): [q: Tensor, k: Tensor, v: Tensor] {
  const [batch, time, width] = qkv.shape as [number, number, number];
  return qkv
    .view(batch, time, 3, heads, width / 3 / heads)
    .permute(2, 0, 3, 1, 4) // (3, B, h, T, d/h)
    .unbind(0) as [Tensor, Tensor, Tensor];
}

/** The outputs of all heads side by side:  (B, h, T, e) → (B, T, h·e) */
export const joinHeads = (y: Tensor): Tensor => y.transpose(1, 2).flatten(2);
