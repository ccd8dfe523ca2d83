import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";

/** silu(gate) ⊙ up, elementwise, both (…, n). Shazeer 2020, https://arxiv.org/abs/2002.05202, equation 6 */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  return call("terse::swiglu", gate, up);
}
