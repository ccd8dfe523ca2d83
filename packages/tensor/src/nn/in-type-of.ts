import { native } from "@terse/native-tensor";
import type { Tensor } from "../tensor.ts";

/**
 * The weight in the type of x, where it is frozen and held in another to save memory. Under autocast it stays as it is:
 * autocast chooses the type of both.
 */
export function inTypeOf(x: Tensor, weight: Tensor): Tensor {
  if (weight.dtype === x.dtype || weight.requiresGrad) return weight;
  const type = x.device === "cpu" ? "cpu" : "cuda";
  const lower = native.enterAutocast(type, null);
  native.leaveAutocast(type, lower);
  return lower === null ? weight.to(x.dtype) : weight;
}
