/**
 * Which parameters a round of local steps sends: all, or one of several fragments that take turns. Douillard et al.
 * 2025, "Streaming DiLoCo", §2.2, https://arxiv.org/abs/2501.18512
 *
 * A layer is never cut: it is a block, with all parameters that have its number (`blocks.3`), or a module of no block
 * (`embedding`).
 */
import type { Segment } from "@terse/tensor";
import { runsOf } from "../runs.ts";

/**
 *   strided      layer i belongs to fragment i mod F, so that each has layers of all depths
 *   sequential   neighbours, in fragments of about the same size
 *   balanced     the largest layer first, each to the fragment that is smallest so far
 */
export const fragmentOrders = ["strided", "sequential", "balanced"] as const;
export type FragmentOrder = (typeof fragmentOrders)[number];

/** The segments of each fragment, in the order of the model. Throws RangeError for more fragments than layers. */
export function fragmentsOf(segments: readonly Segment[], count: number, order: FragmentOrder): Segment[][] {
  const layers = runsOf(segments, (before, segment) => layerName(before.name) === layerName(segment.name));
  if (count > layers.length)
    throw new RangeError(
      `local.fragments: ${count} fragments need as many layers, and the model has ${layers.length}; give at most ${layers.length}`,
    );
  const places = placesOf(layers.map(sizeOf), count, order);
  return Array.from({ length: count }, (_, fragment) => layers.filter((_, i) => places[i] === fragment).flat());
}

/** The fragment of each layer, by the layers' sizes. */
function placesOf(sizes: readonly number[], count: number, order: FragmentOrder): number[] {
  if (order === "strided") return sizes.map((_, i) => i % count);
  if (order === "sequential") return sequential(sizes, count);
  const totals = new Array<number>(count).fill(0);
  const places = new Array<number>(sizes.length);
  const largestFirst = sizes.map((size, i) => [size, i] as const).toSorted(([a], [b]) => b - a);
  for (const [size, i] of largestFirst) {
    places[i] = totals.indexOf(Math.min(...totals));
    totals[places[i]]! += size;
  }
  return places;
}

/** A fragment ends where its end is nearest to its share of what is left, and leaves a layer for each that follows. */
function sequential(sizes: readonly number[], count: number): number[] {
  const places: number[] = [];
  let left = sizes.reduce((sum, size) => sum + size, 0);
  for (let fragment = 0; fragment < count; fragment++) {
    const share = left / (count - fragment);
    const most = sizes.length - (count - fragment - 1);
    let size = 0;
    do {
      size += sizes[places.length]!;
      places.push(fragment);
    } while (
      places.length < most &&
      (fragment === count - 1 || Math.abs(size + sizes[places.length]! - share) <= Math.abs(size - share))
    );
    left -= size;
  }
  return places;
}

const sizeOf = (layer: readonly Segment[]) => layer.reduce((sum, { length }) => sum + length, 0);

/** The layer of a parameter: up to the first number in a parameter's name, else without its last part. */
function layerName(parameter: string): string {
  const parts = parameter.split(".");
  const number = parts.findIndex((part) => /^\d+$/.test(part));
  return parts.slice(0, number >= 0 ? number + 1 : Math.max(1, parts.length - 1)).join(".");
}
