/**
 * How large the buckets of a gradient should be that leave one by one while backward still runs. Backward finishes N elements evenly in
 * T seconds, so of B buckets number k is complete at T k / B; the wire takes them in turn, t(N / B) seconds each:
 *
 *   e₀ = 0,  eₖ = max(eₖ₋₁, T k / B) + t(N / B)        the step waits e_B − T for messages
 *
 * Many buckets hide more of the wire behind backward, and wait for more latencies; the best B is where e_B is about least.
 */

export interface Buckets {
  /** B. */
  readonly count: number;
  /** Elements of a bucket, at most. */
  readonly elements: number;
  /** e_B − T: how long the step waits for messages after backward has ended. */
  readonly exposedSeconds: number;
}

export interface BucketQuestion {
  /** N. */
  readonly elements: number;
  /** T. */
  readonly backwardSeconds: number;
  /** t: seconds until so many elements are exchanged. */
  readonly exchangeSeconds: (elements: number) => number;
  /** Most buckets. */
  readonly most?: number;
}

/**
 * The fewest buckets with which backward and what is left to wait for take at most a hundredth longer than with the best number: every
 * bucket takes some of the processor's time from backward, which the sum above does not see.
 */
export function bestBuckets({ elements, backwardSeconds, exchangeSeconds, most = 64 }: BucketQuestion): Buckets {
  const all: (Buckets & { end: number })[] = [];
  for (let count = 1; count <= Math.max(1, Math.min(most, elements)); count++) {
    const each = Math.ceil(elements / count);
    const seconds = exchangeSeconds(each);
    let end = 0;
    for (let k = 1; k <= count; k++) end = Math.max(end, (backwardSeconds * k) / count) + seconds;
    all.push({ count, elements: each, exposedSeconds: end - backwardSeconds, end });
  }
  const least = Math.min(...all.map(({ end }) => end));
  const { end: _, ...best } = all.find(({ end }) => end <= 1.01 * least)!;
  return best;
}
