/** Which algorithm works on which parameters, as spans: runs of neighbouring segments of the arena that one call of `step` sees. */
import { type Arena, keep, type Segment, type Tensor } from "@terse/tensor";
import type { Algorithm, Vector } from "./algorithms/algorithm.ts";
import type { State } from "./algorithms/state.ts";

export interface ParameterGroup {
  readonly match: (segment: Segment) => boolean;
  readonly algorithm: Algorithm;
}

/** A part of the arena with its algorithm: views of its parameters and gradients, and its state. */
export interface Span {
  readonly algorithm: Algorithm;
  readonly vector: Vector;
  readonly θ: Tensor;
  readonly g: Tensor;
  readonly state: State;
}

/** Runs of neighbouring segments with the same algorithm, in the order of the arena; single segments where it works on those. */
export function spansOf(
  arena: Arena,
  algorithmOf: (segment: Segment) => Algorithm,
  { rank, size }: { rank: number; size: number },
): Span[] {
  const { segments, parameters, gradients } = arena;
  const runs: { algorithm: Algorithm; segments: Segment[] }[] = [];
  for (const segment of segments) {
    const algorithm = algorithmOf(segment);
    const last = runs.at(-1);
    if (last && last.algorithm === algorithm && algorithm.splits !== "at segments") last.segments.push(segment);
    else runs.push({ algorithm, segments: [segment] });
  }
  return runs.map(({ algorithm, segments: mine }) => {
    const [{ offset, shape, length }] = mine as [Segment];
    const single = algorithm.splits === "at segments";
    if (algorithm.splits === "nowhere" && mine.length !== segments.length)
      throw new Error(
        `${algorithm.name} needs the whole model as one vector: it cannot share it with parameter groups`,
      );
    // A run ends where the next one starts: the pad between two segments belongs to the one before it.
    const next = segments[segments.indexOf(mine.at(-1)!) + 1];
    const n = single ? length : (next?.offset ?? parameters.length) - offset;
    const view = (flat: Tensor) => keep(flat.narrow(0, offset, n).view(single ? shape : [n]));
    const vector: Vector = { n, offset, segments: mine, lengths: lengthsOf(mine, offset, n), rank, ranks: size };
    const θ = view(parameters);
    return { algorithm, vector, θ, g: view(gradients), state: kept(algorithm.init(θ, vector)) };
  });
}

/** The part [begin, end) of a span, which holds these of its segments. */
export function slice(span: Span, begin: number, end: number, segments: readonly Segment[]): Span {
  const { algorithm, state } = span;
  const n = end - begin;
  if (n === span.vector.n) return span;
  const offset = span.vector.offset + begin;
  const view = (tensor: Tensor) => keep(tensor.narrow(0, begin, n));
  const vector: Vector = { ...span.vector, n, offset, segments, lengths: lengthsOf(segments, offset, n) };
  const θ = view(span.θ);
  const elements = Object.fromEntries(Object.entries(state.elements ?? {}).map(([key, tensor]) => [key, view(tensor)]));
  // All other state belongs to the vector as a whole: a part has its own.
  const { elements: unused, ...own }: State =
    state.owned || state.replicated || state.scalars ? algorithm.init(θ, vector) : {};
  for (const tensor of Object.values(unused ?? {})) tensor.dispose();
  return { algorithm, vector, θ, g: view(span.g), state: { ...kept(own), elements } };
}

/** Frees the views of a slice; what they are views of stays. */
export function disposeSlice({ θ, g, state }: Span): void {
  for (const view of [θ, g, ...Object.values(state.elements ?? {})]) view.dispose();
}

/** The pads of the arena: elements between one segment's end and the next one's start. */
export function padsOf({ segments, parameters }: Arena): Tensor[] {
  const ends = [...segments.slice(1).map(({ offset }) => offset), parameters.length];
  return segments.flatMap(({ offset, length }, i) => {
    const from = offset + length;
    return from < ends[i]! ? [keep(parameters.narrow(0, from, ends[i]! - from))] : [];
  });
}

function lengthsOf(segments: readonly Segment[], offset: number, n: number): number[] {
  return segments.flatMap((segment, i) => {
    const end = segments[i + 1]?.offset ?? offset + n;
    return [segment.length, end - segment.offset - segment.length];
  });
}

/** The state outlives the scope in which the optimizer was made. */
function kept(state: State): State {
  const shares = Object.values(state.owned ?? {}).map(({ values }) => values);
  for (const tensor of [...Object.values(state.elements ?? {}), ...Object.values(state.replicated ?? {}), ...shares])
    keep(tensor);
  return state;
}
