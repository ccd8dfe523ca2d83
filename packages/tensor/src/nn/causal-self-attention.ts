import { checkOptions } from "@terse/native-tensor";
import type { Tensor } from "../tensor.ts";
import { causalAttention, type KeyValueCache } from "./causal-attention.ts";
import { joinHeads, splitHeads } from "./heads.ts";
import { Linear } from "./linear.ts";
import { Module } from "./module.ts";

/**
 * Each position attends to itself and the ones before it, with `heads` heads.
 *
 *   x (B, T, d) → (B, T, d);   per head d/h
 *
 * With a cache, x follows the positions that the cache has, and is appended to it. With a mask of `packedMask`, each
 * position sees its own text alone.
 */
export class CausalSelfAttention extends Module {
  readonly qkv: Linear; // the rows of q, then k, then v: (3d, d)
  readonly out: Linear;
  readonly heads: number;
  readonly dropout: number;

  constructor(width: number, heads: number, options: { bias?: boolean; dropout?: number } = {}) {
    super();
    checkOptions("CausalSelfAttention", options, ["bias", "dropout"]);
    const { bias = false, dropout = 0 } = options;
    if (!(Number.isInteger(heads) && heads > 0 && width % heads === 0))
      throw new RangeError(
        `CausalSelfAttention: width ${width} does not divide into ${heads} heads; make width a multiple of heads`,
      );
    this.qkv = new Linear(width, 3 * width, { bias });
    this.out = new Linear(width, width, { bias });
    this.heads = heads;
    this.dropout = dropout;
  }

  forward(x: Tensor, cache?: KeyValueCache, mask?: Tensor): Tensor {
    const [q, k, v] = splitHeads(this.qkv.forward(x), this.heads);
    const y = causalAttention(q, k, v, { dropout: this.training ? this.dropout : 0, cache, mask });
    return this.out.forward(joinHeads(y));
  }
}
