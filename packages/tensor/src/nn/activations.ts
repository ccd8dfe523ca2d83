/** Activations as modules, for `Sequential`. */
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

  constructor({ approximate = "none" }: { approximate?: "none" | "tanh" } = {}) {
    super();
    this.approximate = approximate;
  }

  forward(x: Tensor): Tensor {
    return x.gelu({ approximate: this.approximate });
  }
}
