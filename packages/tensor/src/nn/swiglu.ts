import { type Handle, native } from "@terse/native-tensor";
import { handleOf } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";

const id = native.find("terse::swiglu");

/** silu(gate) ⊙ up, elementwise, both (…, n). Shazeer 2020, https://arxiv.org/abs/2002.05202, equation 6 */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  return new Tensor(native.call(id, handleOf(gate), handleOf(up)) as Handle);
}
