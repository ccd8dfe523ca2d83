/**
 * Which algorithm works on which parameters, as spans: runs of neighbouring segments of the arena that one call of
 * `step` sees.
 */
import { keep, type Segment, type Tensor } from "@terse/tensor";
import type { Algorithm, Vector } from "./algorithms/algorithm.ts";
import type { State } from "./algorithms/state.ts";
import type { FlatParameters } from "./flat-parameters.ts";
import { matrixShape } from "./matrix-shape.ts";
import { meshOf, type Parallel } from "./mesh.ts";

/** The parameters that `match` selects, with an algorithm and a learning rate of their own. */
export interface ParameterGroup {
  readonly match: (segment: Segment) => boolean;
  readonly algorithm: Algorithm;
  /** The group's learning rate is that of the step times this; 1 unless given. */
  readonly lrFactor?: number | undefined;
}

/** How a group treats its parameters. */
type Treatment = Omit<ParameterGroup, "match">;

/** The options that say who works on which parameters. */
interface Treatments {
  readonly algorithm: Algorithm; // of what no group matches
  readonly groups?: readonly ParameterGroup[];
  readonly parallel?: Parallel;
}

/** A part of the arena with its algorithm: views of its parameters and gradients, and its state. */
export interface Span extends Treatment {
  readonly vector: Vector;
  readonly θ: Tensor;
  readonly g: Tensor;
  readonly state: State;
}

/**
 * Runs of neighbouring segments that are treated alike, in the order of the arena; single segments where the algorithm
 * works on those.
 */
export function spansOf(
  { segments, parameters, gradients }: FlatParameters,
  { rank, size }: { rank: number; size: number },
  { algorithm: standard, groups = [], parallel }: Treatments,
): Span[] {
  const mesh = meshOf({ rank, size }, parallel);
  const runs: (Treatment & { segments: Segment[] })[] = [];
  for (const segment of segments) {
    const { algorithm, lrFactor } = groups.find(({ match }) => match(segment)) ?? { algorithm: standard };
    const last = runs.at(-1);
    const alike = last?.algorithm === algorithm && last.lrFactor === lrFactor;
    if (last && alike && algorithm.splits !== "at segments") last.segments.push(segment);
    else runs.push({ algorithm, lrFactor, segments: [segment] });
  }
  const algorithms = new Set(runs.map(({ algorithm }) => algorithm));
  if (mesh.weight.length > 1 && ![...algorithms].some(({ shards }) => shards)) {
    const names = [...algorithms].map(({ name }) => name).join(" and ");
    throw new RangeError(
      `parallel.weight is ${mesh.weight.length}, and ${names} cannot be sharded: set it to 1, or take dion`,
    );
  }
  const owners = ownersOf(
    runs.map(({ algorithm, segments: [first] }) => (algorithm.splits === "at segments" ? first!.length : 0)),
    size,
  );
  return runs.map(({ algorithm, lrFactor, segments: mine }, i) => {
    const [{ offset, length }] = mine as [Segment];
    const single = algorithm.splits === "at segments";
    if (algorithm.splits === "nowhere" && mine.length !== segments.length)
      throw new RangeError(
        `${algorithm.name} needs the whole model as one vector: it cannot share it with parameter groups; ${algorithm.perLayer ? `take ${algorithm.perLayer}, or ` : ""}give it all parameters`,
      );
    const seen = mine.map((segment) => takenBy(algorithm, segment));
    // A run ends where the next one starts: the pad between two segments belongs to the one before it.
    const next = segments[segments.indexOf(mine.at(-1)!) + 1];
    const n = single ? length : (next?.offset ?? parameters.length) - offset;
    const view = (flat: Tensor) => keep(flat.narrow(0, offset, n).view(single ? seen[0]!.shape : [n]));
    const lengths = lengthsOf(mine, offset, n);
    const vector: Vector = { n, offset, segments: seen, lengths, rank, ranks: size, owner: owners[i]!, mesh };
    const θ = view(parameters);
    return { algorithm, lrFactor, vector, θ, g: view(gradients), state: kept(algorithm.init(θ, vector)) };
  });
}

/** The segment with the shape in which an algorithm sees it. */
function takenBy({ name: algorithm, takes }: Algorithm, segment: Segment): Segment {
  if (takes === undefined) return segment;
  const { name, shape } = segment;
  const matrix = matrixShape(shape);
  if (matrix) return { ...segment, shape: matrix };
  throw new RangeError(
    `${algorithm} works on matrices, and ${name} has the shape [${shape.join(", ")}]: give such parameters another algorithm, by optimizer.groups in a recipe, such as lion or adamw for roles vector and norm`,
  );
}

/**
 * Gives each matrix to the rank that has the fewest elements so far, the first of these; the same on every rank. In the
 * order of the model, not the largest first: so neighbours, whose messages share a bucket, belong to different ranks,
 * and no link carries most of a bucket.
 */
export function ownersOf(lengths: readonly number[], ranks: number): number[] {
  const owned = new Array<number>(ranks).fill(0);
  return lengths.map((length) => {
    const owner = owned.indexOf(Math.min(...owned));
    owned[owner]! += length;
    return owner;
  });
}

/** The part [begin, end) of a span, which has these of its segments. */
export function slice(span: Span, begin: number, end: number, segments: readonly Segment[]): Span {
  const { algorithm, lrFactor, state } = span;
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
  return { algorithm, lrFactor, vector, θ, g: view(span.g), state: { ...kept(own), elements } };
}

/** Frees the views of a slice; what they are views of stays. */
export function disposeSlice({ θ, g, state }: Span): void {
  for (const view of [θ, g, ...Object.values(state.elements ?? {})]) view.dispose();
}

/** The pads of the arena: elements between one segment's end and the next one's start. */
export function padsOf({ segments, parameters }: FlatParameters): Tensor[] {
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
  const shares = [...Object.values(state.owned ?? {}), ...Object.values(state.shards ?? {})].map(
    ({ values }) => values,
  );
  for (const tensor of [...Object.values(state.elements ?? {}), ...Object.values(state.replicated ?? {}), ...shares])
    keep(tensor);
  return state;
}
