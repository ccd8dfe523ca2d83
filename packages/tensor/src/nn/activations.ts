/** Activations as modules, for `Sequential`. */
import { checkOptions } from "@terse/native-tensor";
import type { Tensor } from "../tensor.ts";
import { Module } from "./module.ts";

/** max(x, 0) */
export class ReLU extends Module {
  forward(x: Tensor): Tensor {
    return x.relu();
  }
}

/**
 * x Φ(x), Φ the normal distribution function; "tanh" approximates it. Hendrycks and Gimpel 2016,
 * https://arxiv.org/abs/1606.08415
 */
export class GELU extends Module {
  readonly approximate: "none" | "tanh";

  constructor(options: { approximate?: "none" | "tanh" } = {}) {
    super();
    checkOptions("GELU", options, ["approximate"]);
    this.approximate = options.approximate ?? "none";
  }

  forward(x: Tensor): Tensor {
    return x.gelu({ approximate: this.approximate });
  }
}
