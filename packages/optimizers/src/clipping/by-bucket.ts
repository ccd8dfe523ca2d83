import type { ClippingWay } from "./clipping-way.ts";

/** N is the norm of each bucket: no bucket waits for another. */
export const byBucket: ClippingWay = {
  ownNeedsAll: false,
  ownNorm: (place, norms) => norms.own(place),
  meanNorm: (place, norms) => norms.mean(place),
};
