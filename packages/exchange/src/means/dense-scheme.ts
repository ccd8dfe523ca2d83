import type { BufferLike } from "@terse/collectives";
import type { Cost } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";

/** A way to carry means, by the type on the wire. */
export interface DenseScheme {
  readonly type: DenseType;
  /**
   * x ← mean over ranks of x, for several vectors, the same bits on every rank. In 8 and 16 bits all ranks throw a
   * StepRefusedError if a rank refuses or a value does not fit. In f32 a value that is not finite spreads to all ranks;
   * so does a refusal, as NaN.
   */
  carry(vectors: readonly BufferLike[], context: ExchangeContext): Promise<void>;
  /** The cost of vectors that are carried together. */
  cost(lengths: readonly number[], ranks: number, rank: number): Cost;
}

/** The type in which a dense mean is sent. */
export type DenseType = "f32" | "bf16" | "f16" | "int8";
