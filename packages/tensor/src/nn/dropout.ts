import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";
import { Module } from "./module.ts";

/** Sets each element to 0 with probability p, else multiplies it by 1/(1 − p). Returns x unchanged if not training. */
export function dropout(x: Tensor, p: number, training: boolean): Tensor {
  return call("aten::dropout", x, p, training);
}

/** `dropout` in training, the identity in evaluation. */
export class Dropout extends Module {
  readonly p: number;

  constructor(p = 0.5) {
    super();
    if (!(p >= 0 && p <= 1)) throw new RangeError(`Dropout: p is ${p}; give a probability, 0 to 1`);
    this.p = p;
  }

  forward(x: Tensor): Tensor {
    return dropout(x, this.p, this.training);
  }
}
