import { type Handle, native } from "@terse/native-tensor";
import { handleOf } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";
import { Module } from "./module.ts";

const id = native.find("aten::dropout");

/** Sets each element to 0 with probability p, else multiplies it by 1/(1 − p). Returns x unchanged if not training. */
export function dropout(x: Tensor, p: number, training: boolean): Tensor {
  return new Tensor(native.call(id, handleOf(x), p, training) as Handle);
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
