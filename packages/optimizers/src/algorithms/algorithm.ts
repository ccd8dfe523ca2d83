/** What one file of this folder defines. */
import type { Exchange, Message } from "@terse/exchange";
import type { Segment, Tensor } from "@terse/tensor";
import type { MomentumSyncOptions } from "../momentum-sync.ts";
import type { State } from "./state.ts";

/** The part of the model that one call of `step` works on, and who works on it. */
export interface Vector {
  readonly n: number; // elements, pads included
  readonly offset: number; // of its first element in the arena
  readonly segments: readonly Segment[]; // the parameters that it holds
  /** Of the segments and of the pad after each, in turn; together n. As `segments` of a codec they keep pads, which are 0, out of scales. */
  readonly lengths: readonly number[];
  readonly rank: number;
  readonly ranks: number; // P
}

/** What a step knows besides its tensors. */
export interface StepContext {
  readonly step: number; // t, from 0
  readonly lr: number; // η of this step: schedules live outside
  readonly gradientScale: number; // the factor that clips an own gradient; kernels multiply by it in passing
  readonly vector: Vector;
}

/** The exchange as an optimizer sees it. */
export interface OptimizerExchange extends Exchange {
  /**
   * g ← mean over ranks of g. Resolves to the factor that clips it: its norm is that of the reduced gradient, so all ranks agree on it.
   * The mean of anything else is `mean`, which clipping does not look at.
   */
  meanGradient(g: Tensor): Promise<number>;
}

/** One await of a step. A step with "meanGradient" works on the mean gradient, any other on the rank's own. */
export type StepMessage = Message | { readonly kind: "meanGradient" };

export interface Algorithm<S extends State = State> {
  readonly name: string;
  /** Where a vector may be cut without changing the result: a step sees any run of segments, single segments, or the whole model. */
  readonly splits: "anywhere" | "at segments" | "nowhere";
  /** Of an algorithm whose elements have an own m: which layers' are averaged, and when; the optimizer does it after the step. */
  readonly momentumSync?: MomentumSyncOptions;
  /** The state of a vector. Called for a run of segments, and again for each part of it that becomes a bucket of its own. */
  init(θ: Tensor, vector: Vector): S;
  /**
   * Every await in here is a message on the wire, and nothing else is awaited. The last one resolves when backward has ended and all
   * ranks agree that the step is good; those before it resolve as soon as they have come. θ changes after the last one.
   */
  step(θ: Tensor, g: Tensor, state: S, exchange: OptimizerExchange, context: StepContext): Promise<void>;
  /**
   * The messages of a step, one for each of its awaits, in order. They may change with the step and with scalars of the state, and are the
   * same on every rank.
   */
  messages(vector: Vector, step: number, state: S): readonly StepMessage[];
}

/** Whether the step works on the mean gradient, or on this rank's own. */
export function averagesGradients(messages: readonly StepMessage[]): boolean {
  return messages.some(({ kind }) => kind === "meanGradient");
}
