/** Buckets: the parts of the arena that leave one by one, in the order in which backward completes their gradients. */
import { type Span, slice } from "./parameter-groups.ts";

/** Spans whose messages leave together. */
export interface Bucket {
  readonly spans: readonly Span[];
}

export const elementsOf = ({ spans }: Bucket): number => spans.reduce((sum, { vector }) => sum + vector.n, 0);

/** The names of its parameters. */
export const namesIn = ({ spans }: Bucket): string[] =>
  spans.flatMap(({ vector }) => vector.segments.map(({ name }) => name));

/**
 * Cuts spans at the ends of segments into buckets of at least `least` elements, from the last segment to the first, in
 * the order of backward. Every rank cuts alike, without a message. The first segments may be a smaller bucket.
 */
export function bucketsOf(spans: readonly Span[], least: number): Bucket[] {
  const buckets: Bucket[] = [];
  let current: Span[] = [];
  let size = 0; // of the current bucket
  for (const span of [...spans].reverse()) {
    const { segments, offset } = span.vector;
    let end = span.vector.n; // of what is left of the span, from its own start
    let endOfSlice = segments.length;
    for (let first = endOfSlice - 1; first >= 0; first--) {
      const begin = segments[first]!.offset - offset;
      const isCut = span.algorithm.splits !== "nowhere" && size + end - begin >= least;
      if (!isCut && first > 0) continue;
      current.unshift(slice(span, begin, end, segments.slice(first, endOfSlice)));
      size += end - begin;
      end = begin;
      endOfSlice = first;
      if (size < least) continue;
      buckets.push({ spans: current });
      current = [];
      size = 0;
    }
  }
  if (current.length > 0) buckets.push({ spans: current });
  return buckets;
}
