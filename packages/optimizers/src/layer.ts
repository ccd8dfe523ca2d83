/** The parameters after a step, one by one, with what the step worked on: for what looks on. */
import type { Segment, Tensor } from "@terse/tensor";
import type { Algorithm, LayerState } from "./algorithms/algorithm.ts";
import type { Span } from "./parameter-groups.ts";

/** A parameter after a step. Tensors are flat views, which the caller's scope frees. */
export interface Layer extends LayerState {
  readonly segment: Segment;
  readonly algorithm: Algorithm;
  readonly g: Tensor; // (n), the gradient that the step worked on: this rank's own, or the mean where ranks average it
  readonly gradientScale: number; // the factor that has clipped it where it is the rank's own
}

/** `gradientScaleOf`: of the parameter with this name. */
export function layersOfSpan(
  { algorithm, vector: { segments, offset }, θ, g, state: { elements = {}, scalars = {} } }: Span,
  gradientScaleOf: (name: string) => number,
): Layer[] {
  const ofLayers = Object.entries(scalars).flatMap(([key, values]) =>
    Array.isArray(values) && values.length === segments.length ? [[key, values] as const] : [],
  );
  return segments.map((segment, i) => {
    const view = (of: Tensor) => of.flatten().narrow(0, segment.offset - offset, segment.length);
    return {
      segment,
      algorithm,
      θ: view(θ),
      g: view(g),
      get gradientScale() {
        return gradientScaleOf(segment.name);
      },
      elements: Object.fromEntries(Object.entries(elements).map(([key, tensor]) => [key, view(tensor)])),
      scalars: Object.fromEntries(ofLayers.map(([key, values]) => [key, values[i]!])),
    };
  });
}
