/**
 * What one file of this folder defines: a way to send the gradient with fewer bits, under any optimizer that takes a
 * mean.
 */
import type { Exchange, Message } from "@terse/exchange";
import type { Problem } from "@terse/options";
import type { Segment, Tensor } from "@terse/tensor";
import type { Algorithm, StepContext, Vector } from "../algorithms/algorithm.ts";
import type { State } from "../algorithms/state.ts";

/** All of a compression but its name: what `create` of its definition makes. */
export type CompressionRules<S extends State = State> = Omit<GradientCompression<S>, "name" | "where">;

/** A way to average gradients with fewer bytes, in place of an algorithm's dense mean. */
export interface GradientCompression<S extends State = State> {
  readonly name: string;
  /** What stands before its options in errors, such as the key of a recipe's section: its name unless given. */
  readonly where?: string;
  /** As for an algorithm: `mean` sees any run of parameters, single ones in their own shape, or the whole model. */
  readonly splits: Algorithm["splits"];
  readonly perLayer?: string;
  /** The option that leaves nothing to compress in a model with these parameters, and what would help. */
  remark?(segments: readonly Segment[]): Problem | undefined;
  /** The state of a vector, whose gradient has the shape of θ. Its keys are none that an algorithm under it uses. */
  init(θ: Tensor, vector: Vector): S;
  /**
   * g ← an estimate of the mean over ranks of g, the same bits on every rank: it is made of reduced data alone. Every
   * await in here is a message on the wire. Pads between parameters, which are 0, stay 0.
   */
  mean(g: Tensor, state: S, exchange: Exchange, context: Pick<StepContext, "step" | "vector">): Promise<void>;
  /** One message for each await of `mean`, in order; the same on every rank. */
  messages(vector: Vector, step: number): readonly Message[];
}
