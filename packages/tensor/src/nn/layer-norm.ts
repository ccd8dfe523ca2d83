import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";
import { createParameter } from "./create-parameter.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";

/** (x − mean) / √(var + ε) ⊙ γ + β over the last dimension. */
export function layerNorm(
  x: Tensor,
  weight?: Tensor | null,
  bias?: Tensor | null,
  { eps = 1e-5 }: { eps?: number } = {},
): Tensor {
  const width = weight ? weight.length : x.shape.at(-1)!;
  return call("aten::layer_norm", x, [width], weight, bias, eps);
}

/** Layer normalisation, Ba, Kiros, Hinton 2016:  x (…, width)   γ, β (width), initialised to ones and zeros */
export class LayerNorm extends Module {
  readonly weight: Parameter;
  readonly bias: Parameter | null;
  readonly eps: number;

  constructor(width: number, options: { bias?: boolean; eps?: number } = {}) {
    super();
    checkOptions("LayerNorm", options, ["bias", "eps"]);
    const { bias = true, eps = 1e-5 } = options;
    this.weight = createParameter([width], "norm", (γ) => γ.fill_(1));
    this.bias = bias ? createParameter([width], "norm", (β) => β.zero_()) : null;
    this.eps = eps;
  }

  forward(x: Tensor): Tensor {
    return layerNorm(x, this.weight, this.bias, { eps: this.eps });
  }
}
