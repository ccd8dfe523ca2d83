import { arange } from "../factories.ts";
import type { Tensor } from "../tensor.ts";

/**
 * What each of `time` positions attends to, which follow `past` others: itself and those before it, with a window only
 * so many with itself. → (time, past + time) bool
 */
export function causalMask(
  past: number,
  time: number,
  { window, device }: { window?: number | undefined; device: string },
): Tensor {
  const own = arange(past, past + time, 1, { dtype: "i64", device }).unsqueeze(1); // (time, 1)
  const all = arange(past + time, { dtype: "i64", device });
  return window === undefined ? all.le(own) : all.le(own).logicalAnd(all.gt(own.sub(window)));
}
