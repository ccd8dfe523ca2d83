import { noGrad, ones, scope } from "@terse/tensor";

/**
 * Measures streaming, in bytes a second: the better of two plain in-place loops of torch over n floats, a ← s a and
 * a ← a + s b. Not memcpy: the writes of an in-place kernel overlap with its reads, and those of a copy do not, which
 * reaches half of the speed.
 */
export function streamingSpeed(n: number): () => number {
  const [a, b] = scope(() => [ones([n]).keep(), ones([n]).keep()]);
  return () =>
    noGrad(() =>
      scope(() => {
        const scaled = (4 * n) / clocked(() => a!.mul_(1.0000001));
        const added = (8 * n) / clocked(() => a!.add_(b!, { alpha: 1e-9 }));
        return Math.max(scaled, added);
      }),
    );
}

/** Seconds. */
export function clocked(work: () => unknown): number {
  const began = performance.now();
  work();
  return (performance.now() - began) / 1000;
}
