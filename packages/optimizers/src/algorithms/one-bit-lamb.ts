/**
 * 1-bit LAMB: LAMB until `warmup`; from then on ranks average their momentum with one bit, and a layer's ratio follows
 * from how the variance has changed since. Li et al. 2021, Algorithm 1, https://arxiv.org/abs/2104.06069
 *
 *   warm-up        as lamb.ts, and a ← β₃ a + (1 − β₃) c where u ≠ 0                  line 2
 *   compression    m ← error-compensated mean over ranks of β₁ m + (1 − β₁) g         lines 6 to 13
 *                                                                                     (compensated-momentum.ts)
 *                  g ← (m − β₁ m_before) / (1 − β₁),  v ← β₂ v + (1 − β₂) g²          lines 15 and 16
 *                  r ← ‖w / v‖_∞                                                      line 17
 *                  r ← clip(r, (1 − threshold) r_before, (1 + threshold) r_before)    line 18
 *                  r ← clip(r, minFactor, maxFactor)                                  line 19
 *                  θ ← θ − η r a (m / (√w + ε) + λ θ)                                 lines 20, 21; no λ in the paper
 *
 * w is v at the end of the warm-up. A step in which a layer does not move (u = 0) says nothing of its ratio, and leaves
 * a as it is, as in DeepSpeed. The paper prints no ε in lines 17 and 21; here it is added to every √v, and ε² to w and
 * v in line 17. The maximum is over the elements with w > 0; a layer without any keeps r. Elements with w = 0 are not
 * sent (one-bit-adam.ts). lamb-basic-one-bit is the ablation of §3.4: r stays 1, and v is not followed.
 *
 * DeepSpeed does two things that the paper does not print:
 *
 *   squareRoot        takes the ratio of the square roots
 *   decayCorrection   r ← r ρ + 1 − ρ,  ρ = ‖m/(√w + ε)‖ / ‖m/(√w + ε) + λ θ‖, at most 1
 *
 * Shapes: θ, g, m, v, w (n), the worker's error (n), the server's error (about n/P)   a, c, r: a number for each layer
 * Sent per step: 1 message of 2 (P − 1)/P · 4 n bytes in warm-up, then of 2 (P − 1)/P · n/8 bytes and the scales.
 */
import {
  type AdamUpdate,
  accumulateAndMeasure,
  adamNorms,
  applyAdamUpdate,
  type NativeBuffer,
  refreshVariance,
} from "@terse/native-optimizers";
import { flag, nonNegativeFloat, positiveFloat, unitIntervalFloat, v } from "@terse/options";
import { noGrad, type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import { makesState } from "../kept-options.ts";
import type { Rules } from "./algorithm.ts";
import {
  CompensatedMomentum,
  type CompensationState,
  compensatedMessage,
  type MomentumPart,
  scales,
} from "./compensated-momentum.ts";
import { slices } from "./kernels.ts";
import { clippedRatio, ratioBounds } from "./lamb.ts";
import { layersOf } from "./layers.ts";
import {
  fractionOfRun,
  keptAfterWarmup,
  resumedWarmup,
  startWarmup,
  type Warmup,
  warmsUp,
  warmup,
  warmupInRun,
  watchVariance,
} from "./warmup.ts";

const shared = {
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁
  beta2: v.optional(unitIntervalFloat, 0.999), // β₂
  beta3: v.optional(unitIntervalFloat, 0.9), // β₃: of the mean ratio a
  eps: v.optional(positiveFloat, 1e-6), // ε, as lamb.ts
  weightDecay: v.optional(nonNegativeFloat, 0.01), // λ
  minRatio: v.optional(positiveFloat), // bounds of c, 0.01 and 0.3
  maxRatio: v.optional(positiveFloat),
  warmup, // before the compression
  scale: v.optional(scales, "per-layer"), // what shares one magnitude; momentum-scaled in the paper
};

export interface OneBitLambState extends CompensationState {
  readonly elements: {
    m: Tensor; // first moment, the same on every rank
    v: Tensor; // second moment, the same on every rank
    frozen: Tensor; // w: the second moment at the end of the warm-up
    workerError: Tensor; // what this rank has not sent yet
  };
  // a and r of the layers.
  readonly scalars: CompensationState["scalars"] & Warmup & { ratios: number[]; changes: number[] };
}

/** The ablation of 1-bit LAMB whose layers keep the ratios of the warm-up. Li et al. 2021, §3.4. */
export const lambBasicOneBit = define({
  name: "lamb-basic-one-bit",
  options: v.object(shared),
  kept: (change) => ({ scale: makesState, ...keptAfterWarmup(change, ["beta2", "beta3", "minRatio", "maxRatio"]) }),
  conflicts: [fractionOfRun, ratioBounds],
  inRun: warmupInRun,
  alone: { is: "lamb" },
  afterWarmup: { warmup: 1 },
  create: (options, where) => rules(options, undefined, where),
});

const ofVariance = {
  minFactor: v.optional(positiveFloat, 0.5), // r_min
  maxFactor: v.optional(positiveFloat, 4), // r_max
  threshold: v.optional(positiveFloat, 0.1), // r_threshold: the largest change of r in a step
  squareRoot: v.optional(flag, false), // the ratio of √v in place of v, as DeepSpeed
  decayCorrection: v.optional(flag, false), // as DeepSpeed
};

/** 1-bit LAMB: LAMB in the warm-up, then momenta that are averaged with one bit. Li et al. 2021, Algorithm 1. */
export const oneBitLamb = define({
  name: "one-bit-lamb",
  options: v.object({ ...shared, ...ofVariance }),
  kept: (change) => ({ scale: makesState, ...keptAfterWarmup(change, ["beta3", "minRatio", "maxRatio"]) }),
  conflicts: [
    fractionOfRun,
    ratioBounds,
    {
      option: "minFactor",
      when: ({ minFactor, maxFactor }) => minFactor > maxFactor,
      because: ({ minFactor, maxFactor }) => `${minFactor} is more than maxFactor, ${maxFactor}`,
      remedy: "take minFactor ≤ maxFactor",
    },
  ],
  inRun: warmupInRun,
  alone: { is: "lamb" },
  afterWarmup: { warmup: 1 },
  create: (options, where) => rules(options, options, where),
});

type Shared = v.InferOutput<v.ObjectSchema<typeof shared, undefined>>;
type OfVariance = v.InferOutput<v.ObjectSchema<typeof ofVariance, undefined>>;

type Layer<Names extends string> = Readonly<Record<Names, NativeBuffer>>;

/** `following`: how r follows the variance; it stays 1 unless given. */
function rules(options: Shared, following: OfVariance | undefined, where: string): Rules<OneBitLambState> {
  const { beta1, beta2, beta3, eps, weightDecay, warmup, scale } = options;
  const ratioOf = clippedRatio(options);
  const momentum = new CompensatedMomentum(scale, beta1, { keepsBefore: following !== undefined });
  const u: AdamUpdate = { first: 1, second: 1, eps, weightDecay };

  return {
    splits: momentum.splits,
    ...(following && { variance: { beta2 } }),
    trustRatio: ({ scalars }) => scalars["ratios"]!,
    perLayer: `${where}.scale: per-layer`,

    init(θ, vector) {
      const { elements, scalars, ...errors } = momentum.init(θ, vector);
      const each = (value: number) => vector.segments.map(() => value);
      return {
        ...errors,
        elements: { ...elements, v: zerosLike(θ), frozen: zerosLike(θ) },
        scalars: { ...scalars, ...startWarmup(warmup), ratios: each(0), changes: each(1) },
      };
    },

    async step(θ, g, state, exchange, context) {
      const { m, v, frozen } = state.elements;
      const { scalars } = state;
      const { step, vector } = context;

      if (warmsUp(scalars, step)) {
        const gradientScale = await exchange.meanGradient(g);
        await exchange.agreed();
        warmUp(layersOf(vector, { θ, m, v, g }), scalars.ratios, gradientScale, context.lr);
        watchVariance(v, scalars, step, beta2);
        if (step + 1 !== scalars.compressesFrom) return;
        noGrad(() => frozen.copy_(v));
        momentum.chooseFactors(state, vector);
        return;
      }

      using own = momentum.ofRank(g, state, frozen, context);
      const wires = await exchange.meanOfWires(own);
      await exchange.agreed();
      using mean = momentum.ofWires(wires, state, frozen, context.vector);
      const { ratios, changes } = scalars;
      for (const [i, layer] of layersOf(vector, { θ, m, v, frozen }).entries()) {
        const parts = mean.ofLayer(i);
        if (following) changes[i] = changeOf(layer, parts, changes[i]!, following);
        const rate = context.lr * changes[i]! * ratios[i]!;
        for (const { begin, end, packed } of parts) {
          const [ofθ, ofM, ofW] = slices([layer.θ, layer.m, layer.frozen], begin, end);
          applyAdamUpdate(ofθ, ofM, ofW, { ...u, rate }, following ? undefined : packed); // changeOf has written m
        }
      }
    },

    messages: (vector, step, { scalars }) => [
      warmsUp(scalars, step) ? { kind: "meanGradient" } : compensatedMessage(vector),
    ],

    adopt: (scalars, step) => ({ ...scalars, ...resumedWarmup(where, scalars, warmup, step) }),
  };

  /** LAMB's step, and a of each layer. */
  function warmUp(layers: readonly Layer<"θ" | "m" | "v" | "g">[], ratios: number[], gradientScale: number, η: number) {
    const moments = { beta1, beta2, gradientScale };
    const norms = layers.map(({ θ, m, v, g }) => accumulateAndMeasure(θ, m, v, g, moments, u));
    for (const [i, { θ, m, v }] of layers.entries()) {
      const [weights, update] = norms[i]!;
      const c = ratioOf(weights, update);
      if (update > 0) ratios[i] = beta3 * ratios[i]! + (1 - beta3) * c;
      applyAdamUpdate(θ, m, v, { ...u, rate: η * c });
    }
  }

  /** r of a layer, from r of the step before. A packed mean is written to m. */
  function changeOf(
    layer: Layer<"θ" | "m" | "v" | "frozen">,
    parts: readonly MomentumPart[],
    before: number,
    { minFactor, maxFactor, threshold, squareRoot, decayCorrection }: OfVariance,
  ): number {
    const options = { beta1, beta2, eps, root: squareRoot };
    const ratios = parts.map(({ begin, end, packed, before: last }) => {
      const [v, frozen, m] = slices([layer.v, layer.frozen, layer.m], begin, end);
      return refreshVariance(v, frozen, m, (packed ?? last)!, options);
    });
    let r = Math.max(0, ...ratios) || before;
    if (decayCorrection && weightDecay > 0) {
      const { θ, m, frozen } = layer;
      const [, decayed] = adamNorms(θ, m, frozen, u);
      const [, plain] = adamNorms(θ, m, frozen, { ...u, weightDecay: 0 });
      const ρ = decayed > 0 ? Math.min(1, plain / decayed) : 1;
      r = r * ρ + 1 - ρ;
    }
    r = Math.min(Math.max(r, (1 - threshold) * before), (1 + threshold) * before);
    return Math.min(Math.max(r, minFactor), maxFactor);
  }
}
