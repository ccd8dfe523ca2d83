/** Buckets: the parts of the arena that leave one by one, in the order in which backward finishes them. */
import { keep, type Segment, type Tensor } from "@terse/tensor";
import type { Algorithm, State } from "./algorithm.ts";

/** A part of the arena that one call of an algorithm's step sees. */
export interface Span {
  readonly algorithm: Algorithm;
  readonly segments: readonly Segment[];
  readonly offset: number;
  readonly length: number;
  readonly layers: readonly number[]; // lengths of the segments and of the pad lanes behind each, in turn
  readonly θ: Tensor;
  readonly g: Tensor;
  readonly state: State;
}

/** Lengths of segments and pads, in turn; together `length`. */
export function layersOf(segments: readonly Segment[], offset: number, length: number): number[] {
  return segments.flatMap((segment, i) => {
    const end = segments[i + 1]?.offset ?? offset + length;
    return [segment.length, end - segment.offset - segment.length];
  });
}

/** What leaves together. */
export interface Bucket {
  readonly spans: readonly Span[];
}

/** Why no part of the gradient may leave before all of it is there, and what would let it; undefined where it may. */
export function obstacle(
  algorithms: readonly Algorithm[],
  clip: number,
  clipBy: "global" | "bucket",
): string | undefined {
  // A mean is clipped when it has come; what votes are made of, before.
  if (clip > 0 && clipBy === "global" && algorithms.some(({ gradient }) => gradient === "own"))
    return "clipping by the global norm needs the last gradient before the first message: set clip to 0, or clipBy to bucket";
  const whole = algorithms.find(({ splits }) => splits !== "anywhere");
  if (!whole) return undefined;
  return `${whole.name} works on ${whole.splits === "nowhere" ? "the whole vector" : "whole layers"} at once: set overlap to off, or take an optimizer that votes element by element, such as lion-cub`;
}

/**
 * Cuts spans at segments' ends into buckets of at least `least` elements, from the last segment to the first: backward comes back
 * from the loss. Every rank cuts alike, so they need not agree. Fewer elements than `least` are one bucket, whatever their algorithms.
 */
export function bucketsOf(spans: readonly Span[], least: number): Bucket[] {
  const all = spans.reduce((sum, { length }) => sum + length, 0);
  if (all <= least) return [{ spans }];
  return [...spans].reverse().flatMap((span) => {
    const buckets: Bucket[] = [];
    let end = span.length; // of what is left of the span, from its own start
    let later = span.segments.length;
    for (let first = later - 1; first >= 0; first--) {
      const begin = span.segments[first]!.offset - span.offset;
      if (end - begin < least && first > 0) continue;
      buckets.push({ spans: [slice(span, begin, end, span.segments.slice(first, later))] });
      end = begin;
      later = first;
    }
    return buckets;
  });
}

/** Gives a bucket's views back; what they are views of stays. */
export function dispose({ θ, g, state }: Span): void {
  for (const view of [θ, g, ...Object.values(state)]) view.dispose();
}

function slice(span: Span, begin: number, end: number, segments: readonly Segment[]): Span {
  const { algorithm, offset } = span;
  const length = end - begin;
  const view = (tensor: Tensor) => keep(tensor.narrow(0, begin, length));
  const state = Object.fromEntries(Object.entries(span.state).map(([key, tensor]) => [key, view(tensor)]));
  const layers = layersOf(segments, offset + begin, length);
  return { algorithm, segments, offset: offset + begin, length, layers, θ: view(span.θ), g: view(span.g), state };
}
