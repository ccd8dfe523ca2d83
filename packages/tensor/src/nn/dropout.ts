import { type Handle, native } from "@terse/native-tensor";
import { handleOf } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";

const id = native.find("aten::dropout");

/** Each element 0 with probability p, else scaled by 1/(1 − p). Nothing happens when not training. */
export function dropout(x: Tensor, p: number, training: boolean): Tensor {
  return new Tensor(native.call(id, handleOf(x), p, training) as Handle);
}
