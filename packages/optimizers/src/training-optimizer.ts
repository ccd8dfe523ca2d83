/** What a training loop needs of an optimizer: `Optimizer` sends in every step, `LocalSteps` after several. */
import type { Group } from "@terse/collectives";
import type { ChosenSchemes } from "@terse/exchange";
import type { Tensor } from "@terse/tensor";
import type { Layer } from "./layer.ts";
import type { Rounds } from "./rounds.ts";
import type { SavedState, StoredState } from "./saved-state.ts";
import type { StepWatch } from "./step.ts";

/** Why a call is refused that somebody has not waited with. */
export const notEnded = "the step before has not ended: await its step, and begin, before the next call";

/** What one step cost, and the norm of its gradient, on this rank. */
export interface StepReport {
  readonly gradientNorm: number; // before clipping
  readonly bytes: number; // sent: payload and headers
  readonly messages: number;
  readonly exposedSeconds: number; // of waiting for messages after backward had ended
  /** With local steps, of a step that uses a round: its costs are the round's. */
  readonly round?: RoundReport;
}

/** A round of local steps. */
export interface RoundReport {
  readonly fragment: number;
  /** ‖θ̄ − θ‖ over the fragment when the round left: how far this rank had gone by itself. */
  readonly drift: number;
  /** That this rank has sent for the round. The step's bytes have them too. */
  readonly bytes: number;
}

export interface TrainingOptimizer extends AsyncDisposable {
  /** Steps taken. */
  readonly steps: number;
  /** Why messages cannot leave while backward still runs, and what would let them; undefined where they can. */
  readonly obstacle: string | undefined;
  /** How large buckets are and why, once `bucket: "auto"` has chosen. */
  readonly bucketing: string | undefined;
  /** The schemes that carry its votes and means. */
  readonly schemes: ChosenSchemes;
  /** The ranks that count their votes together, as its watch sees them; undefined where this rank is none of them. */
  readonly voters: Group | undefined;
  /** Is told how long the parts of its messages take. It may be set between two steps. */
  watch: StepWatch | undefined;
  /** Bytes that 32-bit data parallel would send in each step instead. */
  readonly denseBytes: number;

  /** Before the last backward of a step: messages may leave while it runs. `lr` and `loss` as in `step`. */
  begin(given: { lr: number; loss?: number }): Promise<void>;
  /**
   * All ranks take the step, or none does. `loss` is this rank's, if it wants the others to stop when it is not finite.
   * Throws StepRefusedError on every rank alike; a run then goes on from its last save.
   */
  step(given: { lr: number; loss?: number }): Promise<StepReport>;
  /** Whether all ranks wait for each other in a step, so that other messages make nobody wait there. */
  meets(step: number): boolean;
  /** Payload bytes that this rank sends in a step, by closed form; the next step's unless given. */
  bytesSent(step?: number): number;
  /** The requests of a step, by default the next one: for each bucket its elements and its rounds. */
  requests(step?: number): ({ readonly elements: number } & Rounds)[];
  /** The momenta of this rank, flat: the state's own memory, which changes with each step. */
  momenta(): readonly Tensor[];
  /** Whether some momenta of this rank are no longer its own after a step, because the ranks have averaged them. */
  averagesMomenta(step: number): boolean;
  /** The parameters in the order of the model, with what the last step worked on. */
  layers(): Layer[];
  /** Throws RanksDifferError on every rank unless all hold the same parameters where they should. */
  compare(): Promise<void>;
  /** Runs `body` while the model has the parameters that all ranks have: for evaluation, saves, samples. */
  shared<T>(body: () => Promise<T>): Promise<T>;
  /** This rank's state, by name, for a checkpoint: tensors as views, and numbers. */
  state(): Promise<SavedState>;
  /**
   * Goes on after `steps` steps from the saves of a run's ranks, by rank. SavedStateError where they do not fit.
   * `compressesAnew`: what compresses gradients begins anew, where local steps have ended.
   */
  restore(steps: number, saves: readonly StoredState[], options?: { compressesAnew?: boolean }): Promise<void>;
  /** Closes the groups that it has opened. */
  close(): Promise<void>;
}
