import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import { scope } from "../lifetime.ts";
import type { Tensor } from "../tensor.ts";
import { createParameter } from "./create-parameter.ts";
import { Module } from "./module.ts";
import { Parameter, type Role } from "./parameter.ts";

export interface EmbeddingOptions {
  paddingIdx?: number | null; // this row gets no gradient; −1 is the last one
}

/** Rows of a table:  indices (…) i64   weight (rows, width)   → (…, width) */
export function embedding(indices: Tensor, weight: Tensor, { paddingIdx }: EmbeddingOptions = {}): Tensor {
  const none = -1; // for the operator
  const row = paddingIdx == null ? none : rowOf(paddingIdx, weight.shape[0]!);
  const rows: Tensor = call("aten::embedding", weight, indices, row);
  return weight instanceof Parameter && weight.computesIn !== null ? rows.to(weight.computesIn) : rows;
}

function rowOf(paddingIdx: number, rows: number): number {
  const row = paddingIdx < 0 ? paddingIdx + rows : paddingIdx;
  if (Number.isInteger(row) && row >= 0 && row < rows) return row;
  throw new RangeError(`Embedding: paddingIdx is ${paddingIdx}, and there are ${rows} rows; give one of them`);
}

/**
 * Rows of a learned table (rows, width). They start from the standard normal distribution, that of padding from 0, as
 * in PyTorch.
 */
export class Embedding extends Module {
  readonly weight: Parameter;
  readonly paddingIdx: number | null;

  constructor(rows: number, width: number, options: EmbeddingOptions & { role?: Role } = {}) {
    super();
    checkOptions("Embedding", options, ["paddingIdx", "role"]);
    const { role = "embedding", paddingIdx = null } = options;
    this.paddingIdx = paddingIdx === null ? null : rowOf(paddingIdx, rows);
    this.weight = createParameter([rows, width], role, (w) => w.normal_());
    if (this.paddingIdx !== null) scope(() => this.weight.detach().select(0, this.paddingIdx!).zero_());
  }

  /** indices (…) → (…, width) */
  forward(indices: Tensor): Tensor {
    return embedding(indices, this.weight, this);
  }
}
