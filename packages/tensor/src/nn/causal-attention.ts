import { empty } from "../factories.ts";
import type { Tensor } from "../tensor.ts";
import { causalMask } from "./causal-mask.ts";
import { scaledDotProductAttention } from "./scaled-dot-product-attention.ts";

/**
 * The keys and values of the positions that one attention layer has seen, so that a text is continued without computing
 * them again. For use without gradients. Memory is taken at the first `append`: 2 · B · h · capacity · e elements.
 */
export class KeyValueCache implements Disposable {
  readonly capacity: number; // positions
  #length = 0;
  #keys: Tensor | undefined; // (B, h, capacity, e)
  #values: Tensor | undefined;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** Positions that it has. */
  get length(): number {
    return this.#length;
  }

  /**
   * Appends k and v (B, h, T, e). Returns those of all positions, (B, h, length, e), which share the cache's memory.
   */
  append(k: Tensor, v: Tensor): [keys: Tensor, values: Tensor] {
    const [batch, heads, time, width] = k.shape as [number, number, number, number];
    const length = this.#length + time;
    if (length > this.capacity)
      throw new RangeError(
        `KeyValueCache: ${length} positions do not fit its capacity of ${this.capacity}; make a larger cache, or begin a new one`,
      );
    const { dtype, device } = k;
    this.#keys ??= empty([batch, heads, this.capacity, width], { dtype, device }).keep();
    this.#values ??= empty([batch, heads, this.capacity, width], { dtype, device }).keep();
    this.#keys.narrow(2, this.#length, time).copy_(k);
    this.#values.narrow(2, this.#length, time).copy_(v);
    this.#length = length;
    return [this.#keys.narrow(2, 0, length), this.#values.narrow(2, 0, length)];
  }

  dispose(): void {
    this.#keys?.dispose();
    this.#values?.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

export interface CausalAttentionOptions {
  readonly dropout?: number;
  readonly cache?: KeyValueCache | undefined;
  /** What each position attends to, (…, T, all positions) bool; all up to itself if absent. */
  readonly mask?: Tensor | undefined;
}

/**
 * Each position attends to itself and the ones before it:  q (B, h, T, e)   k, v (B, g, T, e)   → (B, h, T, e)
 * With a cache, the T positions follow those of the cache, attend to them too, and are appended.
 */
export function causalAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  { dropout = 0, cache, mask }: CausalAttentionOptions = {},
): Tensor {
  const past = cache?.length ?? 0;
  const [keys, values] = cache ? cache.append(k, v) : [k, v];
  if (mask) return scaledDotProductAttention(q, keys, values, { mask, dropout });
  if (past === 0) return scaledDotProductAttention(q, k, v, { causal: true, dropout });
  const time = q.shape[2]!;
  if (time === 1) return scaledDotProductAttention(q, keys, values, { dropout }); // the last position sees all
  return scaledDotProductAttention(q, keys, values, { mask: causalMask(past, time, q), dropout });
}
