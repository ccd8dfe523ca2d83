/** Whether messages can leave while backward still runs. */
import type { Clipping } from "./clipping/clipping.ts";
import type { Span } from "./parameter-groups.ts";
import { worksOnOwn } from "./rounds.ts";

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
