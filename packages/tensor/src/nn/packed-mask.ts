import type { Tensor } from "../tensor.ts";

/**
 * What each position of a row attends to where several texts are packed into it: itself, and those before it of its
 * text. `positions` (B, T) i64 are counted in each text, from 0 on. → (B, 1, T, T) bool
 */
export function packedMask(positions: Tensor): Tensor {
  const text = positions.eq(0).to("i64").cumsum(1); // (B, T): the number of each position's text
  return text.unsqueeze(2).eq(text.unsqueeze(1)).tril().unsqueeze(1);
}
