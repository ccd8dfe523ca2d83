import { checkOptions, type Handle, native } from "@terse/native-tensor";
import { handleOf } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";

const id = native.find("aten::scaled_dot_product_attention");

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
  return new Tensor(
    native.call(
      id,
      handleOf(q),
      handleOf(k),
      handleOf(v),
      mask ? handleOf(mask) : null,
      dropout,
      causal,
      scale,
      q.shape.at(-3) !== k.shape.at(-3),
    ) as Handle,
  );
}
