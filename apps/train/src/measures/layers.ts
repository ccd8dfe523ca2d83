/**
 * How layers stand after a step: the sizes of their moments, and the ratios of LAMB. Li et al. 2021, "1-bit LAMB",
 * Figures 1, 4, 5 and 6, https://arxiv.org/abs/2104.06069: the layers whose ratios and variances still change say how
 * long a warm-up must be.
 *
 *   momentum_norms    ‖m‖, of this rank                 ratios    c of LAMB; the mean ratio that 1-bit LAMB keeps
 *   variance_norms    ‖v‖                               changes   r of 1-bit LAMB
 *
 * Sends nothing. It reads m and v once, and θ where there is a ratio.
 */
import { type Layer, normOf } from "@terse/optimizers";
import type { Measured } from "./measured.ts";

/** After step t. Layers whose algorithms keep none of this are left out. */
export function measureLayers(layers: readonly Layer[], step: number): Measured {
  const values = layers.map((layer) => [layer.segment.name, valuesOf(layer, step)] as const);
  return { model: {}, layers: new Map(values.filter(([, each]) => Object.keys(each).length > 0)) };
}

function valuesOf(layer: Layer, step: number): Record<string, number> {
  const { m = layer.elements["M"], v } = layer.elements;
  const ratio = layer.algorithm.trustRatio?.(layer, step);
  const { changes } = layer.scalars;
  return {
    ...(m && { momentum_norms: normOf([m]) }),
    ...(v && { variance_norms: normOf([v]) }),
    ...(ratio !== undefined && { ratios: ratio }),
    ...(changes !== undefined && { changes }),
  };
}
