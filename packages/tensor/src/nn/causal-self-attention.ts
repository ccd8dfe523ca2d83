import type { Tensor } from "../tensor.ts";
import { Linear } from "./linear.ts";
import { Module } from "./module.ts";
import { scaledDotProductAttention } from "./scaled-dot-product-attention.ts";

/**
 * Each position attends to itself and the ones before it, with `heads` heads.
 * x (B, T, d) → (B, T, d);   per head d/h
 */
export class CausalSelfAttention extends Module {
  readonly qkv: Linear; // the rows of q, then k, then v: (3d, d)
  readonly out: Linear;
  readonly heads: number;
  readonly dropout: number;

  constructor(width: number, heads: number, { bias = false, dropout = 0 }: { bias?: boolean; dropout?: number } = {}) {
    super();
    if (!(Number.isInteger(heads) && heads > 0 && width % heads === 0))
      throw new RangeError(
        `CausalSelfAttention: width ${width} does not divide into ${heads} heads; make width a multiple of heads`,
      );
    this.qkv = new Linear(width, 3 * width, { bias });
    this.out = new Linear(width, width, { bias });
    this.heads = heads;
    this.dropout = dropout;
  }

  forward(x: Tensor): Tensor {
    const [batch, time, width] = x.shape as [number, number, number];
    const [q, k, v] = this.qkv
      .forward(x)
      .view(batch, time, 3, this.heads, width / this.heads)
      .permute(2, 0, 3, 1, 4) // (3, B, h, T, d/h)
      .unbind(0) as [Tensor, Tensor, Tensor];
    const y = scaledDotProductAttention(q, k, v, { causal: true, dropout: this.training ? this.dropout : 0 });
    return this.out.forward(y.transpose(1, 2).reshape(batch, time, width));
  }
}
