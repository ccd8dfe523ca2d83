import { noGrad, randn, scope } from "@terse/tensor";

const size = 768; // of matrices, about those of a GPT

/** Operations per second in products of f32 matrices here, the best of a few; a multiply-add counts as two. */
export function matrixSpeed(): number {
  return scope(() =>
    noGrad(() => {
      const [a, b] = [randn([size, size]), randn([size, size])];
      let best = Number.POSITIVE_INFINITY;
      for (let i = 0; i < 6; i++) {
        const began = performance.now();
        a.matmul(b);
        best = Math.min(best, performance.now() - began);
      }
      return (2 * size ** 3) / (best / 1000);
    }),
  );
}
