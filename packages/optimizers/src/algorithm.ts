/** What one file of this folder defines. */
import type { BytesOf, Exchange } from "@terse/exchange";
import type { Tensor } from "@terse/tensor";
import type { MomentumSyncOptions } from "./momentum-sync.ts";

/** What a step is told besides its vectors. */
export interface StepContext {
  readonly step: number; // t, from 0
  readonly lr: number; // η of this step: schedules live outside
  readonly gradientScale: number; // what an own gradient is multiplied with (clipping): kernels do it in passing
  readonly layers: readonly number[]; // lengths of the vector's segments and of the pad lanes behind each, in turn
}

/** The exchange as an optimizer sees it. */
export interface OptimizerExchange extends Exchange {
  /**
   * g ← mean over ranks of g. Resolves to its gradientScale, which clips it to the run's norm: the norm is of the reduced gradient,
   * so all ranks agree on it.
   */
  meanGradient(g: Tensor): Promise<number>;
}

export type State = Record<string, Tensor>;

export interface Algorithm<S extends State = State> {
  readonly name: string;
  /** Where a vector may be cut without changing the result: a step sees whole runs, single segments, or everything. */
  readonly splits: "anywhere" | "at segments" | "nowhere";
  /** Whose gradient the step works on: its own (clipped by the context's gradientScale), or the mean (by `meanGradient`'s). */
  readonly gradient: "own" | "mean";
  /** Of an algorithm whose state has an own m: which layers' are averaged, and when; the optimizer does it after the step. */
  readonly momentumSync?: MomentumSyncOptions;
  init(θ: Tensor): S;
  /** Every await in here is a message on the wire, and nothing else is awaited. θ changes after the last one only. */
  step(θ: Tensor, g: Tensor, state: S, exchange: OptimizerExchange, context: StepContext): Promise<void>;
  /** Votes of several vectors are cut into chunks together; sums each by itself, which their bytes depend on. Votes unless said. */
  readonly sends?: "votes" | "sums";
  /** Payload bytes that one rank sends in a step for n elements. Votes of spans with the same closed form leave as one. */
  readonly bytesSent: BytesOf;
}
