/** Buckets: the parts of the arena that leave one by one, in the order in which backward completes their gradients. */
import type { Algorithm } from "./algorithms/algorithm.ts";
import type { ClipBy } from "./clipping/clipping.ts";
import { type Span, slice } from "./parameter-groups.ts";

/** Spans whose messages leave together. */
export interface Bucket {
  readonly spans: readonly Span[];
}

/** Why no part of the gradient may leave before all of it is there, and what would allow it; undefined where it may. */
export function obstacle(
  algorithms: readonly Algorithm[],
  ownGradients: boolean,
  clip: number,
  clipBy: ClipBy,
): string | undefined {
  // A mean is clipped after it has come; an own gradient before it leaves.
  if (clip > 0 && clipBy === "global" && ownGradients)
    return "clipping by the global norm needs the last gradient before the first message: set clipBy to previous or bucket, or clip to 0";
  const whole = algorithms.find(({ splits }) => splits === "nowhere");
  if (!whole) return undefined;
  const { name, perLayer = "an optimizer that works on single elements or layers" } = whole;
  return `${name} works on the whole vector at once: set overlap to off, or take ${perLayer}`;
}

/**
 * Cuts spans at segments' ends into buckets of at least `least` elements, from the last segment to the first: backward comes back
 * from the loss. Every rank cuts alike, so they need not agree. The first segments may be a smaller bucket.
 */
export function bucketsOf(spans: readonly Span[], least: number): Bucket[] {
  const buckets: Bucket[] = [];
  let current: Span[] = [];
  let size = 0; // of the current bucket
  for (const span of [...spans].reverse()) {
    const { segments, offset } = span.vector;
    let end = span.vector.n; // of what is left of the span, from its own start
    let later = segments.length;
    for (let first = later - 1; first >= 0; first--) {
      const begin = segments[first]!.offset - offset;
      const isCut = span.algorithm.splits !== "nowhere" && size + end - begin >= least;
      if (!isCut && first > 0) continue;
      current.unshift(slice(span, begin, end, segments.slice(first, later)));
      size += end - begin;
      end = begin;
      later = first;
      if (size < least) continue;
      buckets.push({ spans: current });
      current = [];
      size = 0;
    }
  }
  if (current.length > 0) buckets.push({ spans: current });
  return buckets;
}
