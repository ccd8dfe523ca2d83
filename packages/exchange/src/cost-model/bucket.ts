/**
 * The best size of the buckets of a gradient, which are exchanged one after the other while backward still runs.
 * Backward finishes N elements at a constant rate in T seconds, so bucket k of B is complete at T k / B. The wire
 * carries them one by one, t(N / B) seconds each:
 *
 *   e₀ = 0,  eₖ = max(eₖ₋₁, T k / B) + t(N / B)        the step waits e_B − T for messages
 *
 * More buckets overlap more of the exchange with backward, but add latencies. The best B has about the least e_B.
 */

export interface Buckets {
  /** B. */
  readonly count: number;
  /** The most elements of a bucket. */
  readonly elements: number;
  /** e_B − T: how long the step waits for messages after backward has ended. */
  readonly exposedSeconds: number;
}

export interface BucketQuestion {
  /** N. */
  readonly elements: number;
  /** T. */
  readonly backwardSeconds: number;
  /** t: seconds to exchange this many elements. */
  readonly exchangeSeconds: (elements: number) => number;
  /** The most buckets; 64 unless given. */
  readonly most?: number;
}

/**
 * The fewest buckets whose step is at most a hundredth slower than that of the best number. Fewer are better, because
 * every bucket takes some of the processor's time from backward, which the formula above leaves out.
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
