import { native } from "@terse/native-tensor";
import { handleOf } from "./lifetime.ts";
import type { Tensor } from "./tensor.ts";

/**
 * Whether a backward that has not ended adds to the gradients of leaves in the memory of `leaves`, such as an arena's
 * parameters: whoever has not awaited it would read unfinished gradients. Leaves that only parts under `checkpoint` use
 * are not seen.
 */
export const backwardIsUnderWay = (leaves: Tensor): boolean => native.backwardIsUnderWay(handleOf(leaves));
