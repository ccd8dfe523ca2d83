import { type Handle, native } from "@terse/native-tensor";
import { handleOf } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";

const id = native.find("aten::scaled_dot_product_attention");

export interface AttentionOptions {
  causal?: boolean; // a position does not attend to later ones
  mask?: Tensor; // bool: false is masked out; float: added to the scores
  dropout?: number;
  scale?: number; // 1/√e by default
}

/** softmax(q kᵀ · scale) v:  q (…, T, e)   k (…, S, e)   v (…, S, f)   → (…, T, f) */
export function scaledDotProductAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  { causal = false, mask, dropout = 0, scale }: AttentionOptions = {},
): Tensor {
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
    ) as Handle,
  );
}
