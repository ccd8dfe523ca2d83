import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";
import { AdaptableLayer } from "./adaptable-layer.ts";
import { createParameter } from "./create-parameter.ts";
import type { Parameter, Role } from "./parameter.ts";

/** x Wᵀ + b:  x (…, in)   W (out, in)   b (out)   → (…, out). A frozen W may have another type than x. */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor | null): Tensor {
  return call("terse::linear", x, weight, bias);
}

/**
 * y = x Wᵀ + b:  x (…, in)   W (out, in)   b (out)   y (…, out)
 * W and b are initialised as in PyTorch, uniform in ±1/√in.
 */
export class Linear extends AdaptableLayer {
  readonly weight: Parameter;
  readonly bias: Parameter | null;

  constructor(inputs: number, outputs: number, options: { bias?: boolean; role?: Role } = {}) {
    super();
    checkOptions("Linear", options, ["bias", "role"]);
    const { bias = true, role = "matrix" } = options;
    const bound = inputs > 0 ? 1 / Math.sqrt(inputs) : 0;
    this.weight = createParameter([outputs, inputs], role, (w) => w.uniform_(-bound, bound));
    this.bias = bias ? createParameter([outputs], "vector", (b) => b.uniform_(-bound, bound)) : null;
  }

  forward(x: Tensor): Tensor {
    return this.adapted(x, linear(x, this.weight, this.bias));
  }
}
