import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";
import { createParameter } from "./create-parameter.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";

/** (x − mean) / √(var + ε) ⊙ γ + β, with the statistics of each row's group of channels:  x (B, C, …)   γ, β (C) */
export function groupNorm(
  x: Tensor,
  groups: number,
  weight?: Tensor | null,
  bias?: Tensor | null,
  { eps = 1e-5 }: { eps?: number } = {},
): Tensor {
  return call("aten::group_norm", x, groups, weight, bias, eps, true);
}

/**
 * Group normalisation, Wu and He 2018, https://arxiv.org/abs/1803.08494.
 *
 *   x (B, C, …)   γ, β (C), initialised to ones and zeros
 */
export class GroupNorm extends Module {
  readonly weight: Parameter | null;
  readonly bias: Parameter | null;
  readonly groups: number;
  readonly eps: number;

  constructor(groups: number, channels: number, options: { eps?: number; affine?: boolean } = {}) {
    super();
    checkOptions("GroupNorm", options, ["eps", "affine"]);
    const { eps = 1e-5, affine = true } = options;
    if (channels % groups !== 0)
      throw new RangeError(
        `GroupNorm: ${channels} channels do not divide into ${groups} groups; make channels a multiple of groups`,
      );
    this.weight = affine ? createParameter([channels], "norm", (γ) => γ.fill_(1)) : null;
    this.bias = affine ? createParameter([channels], "norm", (β) => β.zero_()) : null;
    this.groups = groups;
    this.eps = eps;
  }

  forward(x: Tensor): Tensor {
    return groupNorm(x, this.groups, this.weight, this.bias, { eps: this.eps });
  }
}
