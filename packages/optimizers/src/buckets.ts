/** Buckets: the parts of the arena that leave one by one, in the order in which backward completes their gradients. */
import { worksOnOwn } from "./accounting.ts";
import type { Bucket } from "./bucket.ts";
import type { Clipping } from "./clipping/clipping.ts";
import { type Span, slice } from "./parameter-groups.ts";

/** Messages were to leave while backward still runs, and the method does not allow it. The message says what would. */
export class OverlapError extends Error {
  override name = "OverlapError";
}

/** Why no part of the gradient may leave before all of it is there, and what would allow it; undefined where it may. */
export function obstacle(spans: readonly Span[], step: number, { limit, by }: Clipping): string | undefined {
  // A mean is clipped after it has come; an own gradient before it leaves.
  if (limit > 0 && by === "global" && worksOnOwn(spans, step))
    return "clipping by the global norm needs the last gradient before the first message: set clipBy to previous or bucket, or clip to 0";
  const whole = spans.find(({ algorithm }) => algorithm.splits === "nowhere");
  if (!whole) return undefined;
  const { name, perLayer = "an optimizer that works on single elements or layers" } = whole.algorithm;
  return `${name} works on the whole vector at once: set overlap to off, or take ${perLayer}`;
}

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
