import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";
import { createParameter } from "./create-parameter.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";

/** x / √(mean(x²) + ε) ⊙ γ over the last dimension. Without eps, ε is the dtype's machine epsilon, as in PyTorch. */
export function rmsNorm(x: Tensor, weight?: Tensor | null, { eps }: { eps?: number } = {}): Tensor {
  return call("terse::rms_norm", x, weight, eps);
}

/** Root mean square normalisation, Zhang & Sennrich 2019:  x (…, width)   γ (width), initialised to ones */
export class RMSNorm extends Module {
  readonly weight: Parameter;
  readonly eps: number | undefined;

  constructor(width: number, options: { eps?: number } = {}) {
    super();
    checkOptions("RMSNorm", options, ["eps"]);
    const { eps } = options;
    this.weight = createParameter([width], "norm", (γ) => γ.fill_(1));
    this.eps = eps;
  }

  forward(x: Tensor): Tensor {
    return rmsNorm(x, this.weight, this.eps === undefined ? {} : { eps: this.eps });
  }
}
