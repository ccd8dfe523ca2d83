/**
 * 0/1 Adam: Adam whose variance is refreshed ever more rarely, and whose ranks average one bit of what they have moved,
 * not in every step. Lu, Li, Zhang, De Sa, He 2022, Algorithm 1, https://arxiv.org/abs/2202.06009
 *
 *   if t ∈ T_v:  v ← β₂ v + (1 − β₂) mean_ranks(g)²           n floats, of which m is made too (see `early`)
 *   m ← β₁ m + (1 − β₁) g                                     g: this rank's own
 *   u ← u + η m                                               this rank's moves since all had one θ, times √v + ε
 *   if t ∈ T_u:  u ← error-compensated mean over ranks of u   one bit up, one bit down (compensated-momentum.ts)
 *                m ← u / Σ η                                  over the steps that u has added up
 *   θ ← θ₀ − u / (√v + ε)                                     θ₀: the last common θ; decays by 1 − η λ in each step
 *   if t ∈ T_u:  θ₀ ← θ,  u ← 0
 *
 *   T_v    0 = k₀ < k₁ < …, k_{j + 1} = k_j + 2^⌊j/κ⌋, below `freeze`
 *   T_u    every step below `freeze`; then every H-th, H = 2^⌊(t − freeze)/doubling⌋ and at most `localSteps`
 *
 * A step outside of T_u is a local step: the ranks' θ differ until the next one in T_u. θ is computed from θ₀, not by
 * undoing the local steps, so all ranks then have the same bits. The variance is refreshed before it is used: in the
 * first step it is 0. Elements with v = 0 are not sent and do not move, as in one-bit-adam.ts. The paper has no weight
 * decay. The numbers of T_v and T_u are those of DeepSpeed's example
 * (https://www.deepspeed.ai/tutorials/zero-one-adam); its code has 100,000 for `freeze` and 32,678 for `doubling` where
 * none is given, and doubles both intervals as here, where the tutorial prints 2 · exp{…}.
 *
 * `early` is what the ranks average below `freeze`:
 *   exact      in T_v the mean of g, for v and for m, without a second message; in other steps u
 *   buffer     in T_v the mean of g, for v alone, and then u, as Algorithm 1 prints it. Training can diverge: in the
 *              first steps all elements of u have one magnitude, divided by variances that differ by their whole range
 *   gradient   as DeepSpeed: in T_v as `exact`; in other steps one bit of g; at `freeze` the errors begin anew
 *
 * Shapes: θ, g, m, v, u, θ₀ (n), the worker's error (n), the server's error (about n/P)
 * Sent per step:
 *   in T_v                   1 message of 2 (P − 1)/P · 4 n bytes (with `buffer` and the next one too)
 *   in other steps of T_u    1 message of 2 (P − 1)/P · n/8 bytes and the scales
 *   in local steps           nothing
 */
import { accumulateMoments, applyAdamUpdate } from "@terse/native-optimizers";
import { nonNegativeFloat, oneOf, positiveFloat, positiveInteger, unitIntervalFloat, v } from "@terse/options";
import { noGrad, type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import { makesState } from "../kept-options.ts";
import type { Rules } from "./algorithm.ts";
import {
  type CompensationErrors,
  compensatedMessage,
  compensation,
  compensationErrors,
} from "./compensated-momentum.ts";
import { resultOf } from "./kernels.ts";

const options = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁
  beta2: v.optional(unitIntervalFloat, 0.999), // β₂
  eps: v.optional(positiveFloat, 1e-8), // ε
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  freeze: v.optional(positiveInteger, 1000), // the step from which v stays
  kappa: v.optional(positiveInteger, 16), // κ: refreshes until the interval between them doubles
  doubling: v.optional(positiveInteger, 1000), // steps until the interval between synchronisations doubles
  localSteps: v.optional(positiveInteger, 16), // the longest interval between synchronisations; 1: no local steps
  early: v.optional(oneOf(["exact", "buffer", "gradient"]), "exact"), // what the ranks average below `freeze`
  scale: v.optional(oneOf(["per-layer", "fused"]), "per-layer"), // what shares one magnitude; fused in the paper
});

const frozen = "the variance stays by now";

export interface ZeroOneAdamState extends CompensationErrors {
  readonly elements: CompensationErrors["elements"] & {
    m: Tensor; // first moment, this rank's own between two synchronisations
    v: Tensor; // second moment, the same on every rank
    u: Tensor; // what this rank has moved since the last synchronisation, times √v + ε
    shared: Tensor; // θ₀, where u is not 0
  };
  readonly scalars: { pending: number; rates: number }; // steps that u has added up, and the sum of their η
}

/** 0/1 Adam: ranks average one bit of what they moved, not in every step. Lu et al. 2022, Algorithm 1. */
export const zeroOneAdam = define({
  name: "zero-one-adam",
  options,
  /** The options that say how v is made count only before `freeze`. What the errors belong to depends on `early`. */
  kept: ({ before, after, step }) => ({
    scale: makesState,
    early: makesState,
    ...(step >= before.freeze
      ? { freeze: frozen, kappa: frozen, beta2: frozen }
      : step >= after.freeze && {
          freeze: `the variance was refreshed until step ${step}, so ${step + 1} is the least`,
        }),
  }),
  inRun({ localSteps, freeze, doubling }, steps) {
    if (localSteps === 1 || freeze + doubling + (doubling % 2) < steps) return {};
    const problem = `local steps begin after freeze + doubling, ${freeze + doubling} steps, and the run has ${steps}, so there is none`;
    return { remarks: [{ path: "localSteps", problem, remedy: "take a smaller freeze or doubling, or more steps" }] };
  },

  alone: { is: "adamw" },
  afterWarmup: { freeze: 1, doubling: 1 },
  ownSteps: { option: "localSteps", of: "0/1 Adam" },

  create(
    { beta1, beta2, eps, weightDecay, freeze, kappa, doubling, localSteps, early, scale },
    where,
  ): Rules<ZeroOneAdamState> {
    /** Whether t ∈ T_v: with block b of κ refreshes, 2^b steps apart, from κ (2^b − 1) on. */
    const refreshes = (t: number) => {
      const block = Math.floor(Math.log2(t / kappa + 1));
      return t < freeze && (t - kappa * (2 ** block - 1)) % 2 ** block === 0;
    };
    /** Whether t ∈ T_u. */
    const synchronises = (t: number) => {
      const interval = Math.min(localSteps, 2 ** Math.floor((t - freeze) / doubling));
      return t < freeze || (t - freeze + 1) % interval === 0;
    };
    const plain = { first: 1, second: 1, eps };
    /** θ ← θ₀ − u / (√v + ε) */
    const moveFromShared = (θ: Tensor, { elements: { shared, u, v } }: ZeroOneAdamState) => {
      noGrad(() => θ.copy_(shared));
      applyAdamUpdate(θ, u, v, { ...plain, weightDecay: 0, rate: 1 });
    };
    const usesMeanGradient = (t: number) => early !== "buffer" && refreshes(t);
    const usesOneBitGradient = (t: number) => early === "gradient" && t < freeze && !refreshes(t);

    return {
      splits: scale === "per-layer" ? "at segments" : "nowhere",
      perLayer: `${where}.scale: per-layer`,

      init(θ, vector) {
        const errors = compensationErrors(θ, vector);
        const zeros = () => zerosLike(θ);
        return {
          ...errors,
          elements: { ...errors.elements, m: zeros(), v: zeros(), u: zeros(), shared: zeros() },
          scalars: { pending: 0, rates: 0 },
        };
      },

      async step(θ, g, state, exchange, { step, lr: η, gradientScale }) {
        const { m, v, u, shared } = state.elements;
        const { scalars, derived } = state;
        const moments = { beta1, beta2, gradientScale: 1 };
        if (early === "gradient" && step === freeze) clear(state);

        if (usesMeanGradient(step)) {
          const clip = await exchange.meanGradient(g);
          await exchange.agreed();
          accumulateMoments(m, v, g, { ...moments, gradientScale: clip });
          derived.zeros = undefined;
          applyAdamUpdate(θ, m, v, { ...plain, weightDecay, rate: η });
          return;
        }

        if (usesOneBitGradient(step)) {
          using mean = noGrad(() => g.mul(gradientScale));
          await exchange.meanErrorCompensated(mean, compensation(state, v));
          await exchange.agreed();
          using unused = zerosLike(v);
          accumulateMoments(m, unused, mean, moments);
          applyAdamUpdate(θ, m, v, { ...plain, weightDecay, rate: η });
          return;
        }

        if (refreshes(step)) {
          using mean = noGrad(() => g.mul(gradientScale));
          await exchange.mean(mean);
          using unused = zerosLike(m);
          accumulateMoments(unused, v, mean, moments);
          derived.zeros = undefined;
        }
        using momentum = noGrad(() => m.mul(beta1).add_(g, { alpha: gradientScale * (1 - beta1) }));
        using moved = resultOf(() => u.add(momentum, { alpha: η }).mul_(v.gt(0)));
        const rates = scalars.rates + η;

        if (!synchronises(step)) {
          await exchange.agreed();
          if (scalars.pending === 0) noGrad(() => shared.copy_(θ));
          noGrad(() => [shared.mul_(1 - η * weightDecay), m.copy_(momentum), u.copy_(moved)]);
          Object.assign(scalars, { pending: scalars.pending + 1, rates });
          moveFromShared(θ, state);
          return;
        }

        await exchange.meanErrorCompensated(moved, compensation(state, v)); // their mean
        await exchange.agreed();
        if (scalars.pending > 0) noGrad(() => θ.copy_(shared));
        applyAdamUpdate(θ, moved, v, { ...plain, weightDecay: η * weightDecay, rate: 1 });
        // With a learning rate of 0, as in the first step of a schedule, the momentum cannot be computed from the
        // moves.
        noGrad(() => [m.copy_(rates > 0 ? moved.mul_(1 / rates) : momentum), u.zero_()]);
        Object.assign(scalars, { pending: 0, rates: 0 });
      },

      messages(vector, step) {
        if (usesMeanGradient(step)) return [{ kind: "meanGradient" }];
        return [
          ...(refreshes(step) ? [{ kind: "mean", n: vector.n } as const] : []),
          ...(synchronises(step) ? [compensatedMessage(vector)] : []),
        ];
      },

      isLocal: (step) => !synchronises(step),

      restoreParameters(θ, state) {
        if (state.scalars.pending > 0) moveFromShared(θ, state);
      },
    };
  },
});

/** Errors of another quantity are useless. */
function clear({ elements, owned }: ZeroOneAdamState): void {
  elements.workerError.zero_();
  owned.serverError.values.zero_();
}
