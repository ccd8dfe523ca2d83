import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";

export interface AttentionOptions {
  causal?: boolean; // a position does not attend to later ones
  mask?: Tensor; // bool: false is masked out; float: added to the scores
  dropout?: number;
  scale?: number; // 1/√e by default
}

/**
 * softmax(q kᵀ · scale) v:  q (…, h, T, e)   k (…, g, S, e)   v (…, g, S, f)   → (…, h, T, f)
 * With fewer heads of k and v, each serves h/g neighbouring heads of q: grouped-query attention, Ainslie et al. 2023,
 * https://arxiv.org/abs/2305.13245
 */
export function scaledDotProductAttention(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions = {}): Tensor {
  checkOptions("scaledDotProductAttention", options, ["causal", "mask", "dropout", "scale"]);
  const { causal = false, mask, dropout = 0, scale } = options;
  const isGrouped = q.shape.at(-3) !== k.shape.at(-3);
  return call("aten::scaled_dot_product_attention", q, k, v, mask, dropout, causal, scale, isGrouped);
}
