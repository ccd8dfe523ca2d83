import { type Handle, native } from "@terse/native-tensor";
import { handleOf } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";
import { createParameter } from "./create-parameter.ts";
import { Module } from "./module.ts";
import type { Parameter, Role } from "./parameter.ts";

const id = native.find("aten::embedding");

/** Rows of a table:  indices (…) i64   weight (rows, width)   → (…, width) */
export function embedding(indices: Tensor, weight: Tensor): Tensor {
  return new Tensor(native.call(id, handleOf(weight), handleOf(indices)) as Handle);
}

/** Rows of a learned table (rows, width). Initialised from the standard normal distribution, as in PyTorch. */
export class Embedding extends Module {
  readonly weight: Parameter;

  constructor(rows: number, width: number, { role = "embedding" }: { role?: Role } = {}) {
    super();
    this.weight = createParameter([rows, width], role, (w) => w.normal_());
  }

  /** indices (…) → (…, width) */
  forward(indices: Tensor): Tensor {
    return embedding(indices, this.weight);
  }
}
