/** What one file of this folder defines. */
import type { Exchange, FromOwnerOptions, Message } from "@terse/exchange";
import type { Segment, Tensor } from "@terse/tensor";
import type { Mesh } from "../mesh.ts";
import type { MomentumSyncOptions } from "../momentum-sync-options.ts";
import type { State } from "./state.ts";

/** The part of the model that one call of `step` works on, and who works on it. */
export interface Vector {
  readonly n: number; // elements, pads included
  readonly offset: number; // of its first element in the arena
  readonly segments: readonly Segment[]; // the parameters that it holds
  /**
   * The lengths of each segment and of the pad after it, in turn; together n. As `segments` of a codec they keep pads,
   * which are 0, out of scales.
   */
  readonly lengths: readonly number[];
  readonly rank: number;
  readonly ranks: number; // P
  /**
   * The rank that computes what only one rank shall compute (`exchange.computedMean`). The ranks share all layers by
   * their sizes.
   */
  readonly owner: number;
  /**
   * The ranks along the data axis and along the weight axis; without the option `parallel` all ranks, and this one
   * alone.
   */
  readonly mesh: Mesh;
}

/** What a step knows besides its tensors. */
export interface StepContext {
  readonly step: number; // t, from 0
  readonly lr: number; // η of this step: schedules live outside
  readonly gradientScale: number; // the factor that clips an own gradient; kernels multiply by it in passing
  readonly vector: Vector;
}

/** The exchange as an optimizer sees it, with the mean gradient, which is clipped by its norm. */
export interface OptimizerExchange extends Exchange {
  /**
   * g ← mean over ranks of g. Resolves to the factor that clips it. For the mean of anything else use `mean`, which is
   * not clipped.
   */
  meanGradient(g: Tensor): Promise<number>;
  /**
   * g ← mean over ranks of g, on its owner alone. Resolves on every rank to the factor that clips it: the owners tell
   * all ranks the norms.
   */
  meanGradientAtOwner(g: Tensor, options: FromOwnerOptions): Promise<number>;
  /**
   * The factor that clips a mean gradient g that messages marked `ofMean` have made: the same on every rank, without a
   * message of its own.
   */
  clipFactor(g: Tensor): Promise<number>;
  /**
   * The last await of every step: backward has ended, all messages of the step have come, in all of the model, and no
   * rank has refused it. θ changes after this line, and nowhere else. A refused step throws a StepRefusedError here, or
   * in an await before, on every rank.
   */
  agreed(): Promise<void>;
}

/**
 * One message of a step. A step with "meanGradient" or "meanGradientAtOwner" works on the mean gradient, any other on
 * the rank's own. Messages marked `ofMean` carry a mean gradient that is compressed (gradients/compressed.ts).
 */
export type StepMessage =
  | (Message & { readonly ofMean?: true })
  | { readonly kind: "meanGradient" | "meanGradientAtOwner" };

/** A parameter and its part of the state. */
export interface LayerState {
  readonly θ: Tensor; // (n)
  readonly elements: Readonly<Record<string, Tensor>>; // (n) each, such as m and v
  readonly scalars: Readonly<Record<string, number>>; // those that every layer has for itself
}

/** All of an algorithm but its name: what `create` of its definition makes. */
export type Rules<S extends State = State> = Omit<Algorithm<S>, "name" | "where">;

/** An optimization algorithm: what it keeps for a vector of parameters, what it sends, and how it takes a step. */
export interface Algorithm<S extends State = State> {
  readonly name: string;
  /** What stands before its options in errors, such as the key of a recipe's section: its name unless given. */
  readonly where?: string;
  /**
   * Where a vector may be cut without changing the result: a step sees any run of segments, single segments, or the
   * whole model.
   */
  readonly splits: "anywhere" | "at segments" | "nowhere";
  /** Where `splits` is "nowhere": the option that lets it work on single layers, "one-bit-adam.scale: per-layer". */
  readonly perLayer?: string;
  /**
   * The parameters that it can work on: all unless given. The others need a group with another algorithm. Filters of a
   * convolution are matrices, (out, in · kh · kw), and it sees them in this shape (matrix-shape.ts).
   */
  readonly takes?: "matrices";
  /** The ranks of `vector.mesh.weight` can share its state. Other algorithms have all of it on every rank. */
  readonly shards?: true;
  /**
   * Every step works on the mean gradient, and on nothing else of a rank's own. So the mean may be compressed
   * (gradients/).
   */
  readonly takesMean?: true;
  /**
   * The weights of an algorithm whose ranks send signs or levels of c = β₁ m + (1 − β₁) g, each of its own m and g.
   * After that m ← β₂ m + (1 − β₂) g.
   */
  readonly votes?: { readonly beta1: number; readonly beta2: number };
  /** β₂ of an algorithm that keeps v ← β₂ v + (1 − β₂) g² in every step, in `elements`. */
  readonly variance?: { readonly beta2: number };
  /**
   * For an algorithm whose steps are in proportion to the weights of each layer: the ratio of a layer after step t.
   */
  trustRatio?(layer: LayerState, step: number): number;
  /**
   * For an algorithm with its own m in `elements`: the layers whose momenta are averaged, and when. The optimizer does
   * it after the step.
   */
  readonly momentumSync?: MomentumSyncOptions;
  /**
   * The state of a vector. Called for a run of segments, and again for each part of it that becomes a bucket of its
   * own.
   */
  init(θ: Tensor, vector: Vector): S;
  /** Whether a state has this name because gradients are compressed. */
  isOfCompression?(name: string): boolean;
  /**
   * Every await in here is a message on the wire, or the line in which all ranks agree that θ may change: `await
   * exchange.agreed()`.
   */
  step(θ: Tensor, g: Tensor, state: S, exchange: OptimizerExchange, context: StepContext): Promise<void>;
  /**
   * The messages of a step, in order, one for each of its awaits but the last. They may change with the step and with
   * scalars of the state, and are the same on every rank.
   */
  messages(vector: Vector, step: number, state: S): readonly StepMessage[];
  /**
   * Whether every rank changes θ by itself in this step, so that their θ differ until a later step makes them the same.
   * Never unless given.
   */
  isLocal?(step: number): boolean;
  /**
   * Called before the state of a save is restored: returns the numbers that were saved after `step` steps, as these
   * options need them. SavedStateError for options that come too late.
   */
  adopt?(scalars: NonNullable<S["scalars"]>, step: number): NonNullable<S["scalars"]>;
  /**
   * For an algorithm with local steps: makes this rank's θ from a restored state, because a save has the θ of one rank.
   */
  restoreParameters?(θ: Tensor, state: S): void;
}
