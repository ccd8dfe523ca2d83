import { expect, it } from "vitest";
import { cat, causalAttention, KeyValueCache, manualSeed, memory, randn, scope, type Tensor } from "../index.ts";

const parts = (x: Tensor, lengths: readonly number[]) => x.split(lengths, 2);

it.each([[[7]], [[1, 1, 1, 1, 1, 1, 1]], [[3, 4]], [[2, 1, 4]]])(
  "gives positions that follow those of a cache what it gives to all at once: %o",
  (lengths) => {
    manualSeed(1);
    const before = memory();
    scope(() => {
      const [q, k, v] = [1, 2, 3].map(() => randn([2, 3, 7, 4])) as [Tensor, Tensor, Tensor]; // (B, h, T, e)
      const whole = causalAttention(q, k, v);
      using cache = new KeyValueCache(9);
      const [qs, ks, vs] = [parts(q, lengths), parts(k, lengths), parts(v, lengths)];
      const pieces = lengths.map((_, i) => causalAttention(qs[i]!, ks[i]!, vs[i]!, { cache }));
      expect(cache.length).toBe(7);
      expect(cat(pieces, 2).allclose(whole, { rtol: 1e-5, atol: 1e-6 })).toBe(true);
    });
    expect(memory()).toEqual(before);
  },
);

it("a cache refuses more positions than its capacity, and keeps those that it has", () => {
  scope(() => {
    using cache = new KeyValueCache(4);
    const x = randn([1, 1, 3, 2]);
    cache.append(x, x);
    expect(() => cache.append(x, x)).toThrow("KeyValueCache: 6 positions do not fit its capacity of 4");
    expect(cache.length).toBe(3);
  });
});
