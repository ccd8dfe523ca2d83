/** The layout of attention with h heads, for models that name its layers themselves. */
import type { Tensor } from "../tensor.ts";

/**
 * q, k and v, which stand side by side in the result of one layer:  (B, T, 3d) → three times (B, h, T, d/h)
 * Backward of `split` puts their gradients side by side in one copy; that of `unbind` would stack them, and the layer
 * copy them again.
 */
export function splitHeads(qkv: Tensor, heads: number): [q: Tensor, k: Tensor, v: Tensor] {
  const [batch, time, width] = qkv.shape as [number, number, number];
  const d = width / 3;
  return qkv.split(d, -1).map((y) => y.view(batch, time, heads, d / heads).transpose(1, 2)) as [Tensor, Tensor, Tensor];
}

/** The outputs of all heads side by side:  (B, h, T, e) → (B, T, h·e) */
export const joinHeads = (y: Tensor): Tensor => y.transpose(1, 2).flatten(2);
