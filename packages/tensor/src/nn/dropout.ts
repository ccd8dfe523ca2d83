import { type Handle, native } from "@terse/native-tensor";
import { handleOf } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";

const id = native.find("aten::dropout");

/** Sets each element to 0 with probability p, else multiplies it by 1/(1 − p). Returns x unchanged if not training. */
export function dropout(x: Tensor, p: number, training: boolean): Tensor {
  return new Tensor(native.call(id, handleOf(x), p, training) as Handle);
}
