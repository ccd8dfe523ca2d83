import type { ClippingWay } from "./clipping-way.ts";

/**
 * N is the norm of the whole gradient: an own gradient waits for the end of backward, and a mean for the means of all
 * buckets.
 */
export const byGlobal: ClippingWay = {
  ownNeedsAll: true,
  ownNorm: (_, norms) => norms.wholeOwn(),
  meanNorm: (_, norms) => norms.wholeMean(),
};
