import { difference, sumOfSquares } from "@terse/native-optimizers";
import { call, keep, noGrad, type Segment, scope, type Tensor, zeros } from "@terse/tensor";
import type { FlatParameters } from "../flat-parameters.ts";
import { runsOf } from "../runs.ts";

const alignment = 64;

/** Neighbouring parameters of a fragment, in the three memories. */
interface Run {
  readonly own: Tensor; // θ, of the model
  readonly shared: Tensor; // θ̄
  readonly difference: Tensor; // Δ
  readonly sent: Tensor | undefined; // θ when a round left
}

/**
 * A fragment of the parameters that all ranks share, θ̄, as an optimizer's flat parameters. Its gradient is the
 * pseudo-gradient Δ = θ̄ − θ: what this rank's local steps have taken away.
 */
export class SharedCopy implements FlatParameters {
  readonly parameters: Tensor; // θ̄ (N_f)
  readonly gradients: Tensor; // Δ (N_f), a part of `differences`
  readonly sent: Tensor | undefined; // θ when a round left (N_f), a part of the constructor's `sent`
  readonly segments: readonly Segment[];
  readonly #runs: readonly Run[];

  /**
   * `differences` and `sent`: memory for Δ, and for θ when a round left, of which all fragments take the beginning: one
   * at a time is under way. Without `sent` a rank gives up its steps beside a round.
   */
  constructor(flat: FlatParameters, segments: readonly Segment[], differences: Tensor, sent?: Tensor) {
    const offsets = offsetsOf(segments);
    const length = offsets.at(-1)!;
    this.segments = segments.map((segment, i) => ({ ...segment, offset: offsets[i]! }));
    this.parameters = keep(zeros([length], { device: flat.parameters.device }));
    this.gradients = keep(differences.narrow(0, 0, length));
    this.sent = sent && keep(sent.narrow(0, 0, length));
    const all = flat.segments;
    const follows = (before: number, i: number) => all[all.indexOf(segments[before]!) + 1] === segments[i];
    this.#runs = runsOf([...segments.keys()], follows).map((run) => {
      const first = run[0]!;
      const begin = offsets[first]!;
      const n = offsets[run.at(-1)! + 1]! - begin;
      const view = (tensor: Tensor, at: number) => keep(tensor.narrow(0, at, n));
      return {
        own: view(flat.parameters, segments[first]!.offset),
        shared: view(this.parameters, begin),
        difference: view(this.gradients, begin),
        sent: this.sent && view(this.sent, begin),
      };
    });
  }

  /** No backward completes Δ: it is there when a step begins. */
  onGradientReady(): () => void {
    return () => {};
  }

  /** θ̄ ← θ */
  take(): void {
    noGrad(() => {
      for (const { own, shared } of this.#runs) shared.copy_(own);
    });
  }

  /** Remembers θ as that of a round that leaves. */
  remember(): void {
    noGrad(() => {
      for (const { own, sent } of this.#runs) sent?.copy_(own);
    });
  }

  /** Δ ← θ̄ − θ. Returns ‖Δ‖. */
  subtract(): number {
    const isOnHost = this.gradients.device === "cpu";
    return Math.sqrt(
      this.#runs.reduce(
        (sum, run) => sum + (isOnHost ? difference : plainDifference)(run.difference, run.shared, run.own),
        0,
      ),
    );
  }

  /** θ ← α θ + (1 − α) θ̄, or with the steps beside the round α θ + (1 − α) (θ̄ + θ − θ when it left). */
  mix(alpha: number): void {
    noGrad(() => {
      for (const { own, shared, sent } of this.#runs) {
        sent?.sub_(own); // the steps beside the round, with the other sign
        if (alpha === 0) own.copy_(shared);
        else own.lerp_(shared, 1 - alpha);
        if (sent) own.sub_(sent, { alpha: 1 - alpha });
      }
    });
  }

  /** θ ← θ̄ */
  show(): void {
    noGrad(() => {
      for (const { own, shared } of this.#runs) own.copy_(shared);
    });
  }
}

/** `difference` on any device, in two passes: d ← a − b, and Σ d². */
function plainDifference(d: Tensor, a: Tensor, b: Tensor): number {
  noGrad(() => scope(() => call("aten::sub.out", a, b, 1, d)));
  return sumOfSquares(d);
}

/** Where each segment begins, without gaps but for the alignment, and where the last one ends. */
export function offsetsOf(segments: readonly Segment[]): number[] {
  const offsets = [0];
  for (const { length } of segments) offsets.push(Math.ceil((offsets.at(-1)! + length) / alignment) * alignment);
  return offsets;
}
