/** The options of the kernels. A number is rounded to fp32 once. */

/** The sign of an exact zero, which one bit cannot represent. */
export type Sign = "plus" | "minus";

/** θ ← keep θ + scale · (…), both rounded to fp32. For Lion keep = 1 − η λ and scale = −η. */
export interface Change {
  keep: number;
  scale: number;
}

export interface LionMixOptions {
  beta1: number; // β₁
  beta2: number; // β₂
  gradientScale?: number; // multiplies g first; 1 if absent
}

export interface LionVoteOptions extends LionMixOptions {
  zero: Sign;
}

export interface LionStepOptions {
  lr: number; // η
  beta1: number; // β₁
  beta2: number; // β₂
  weightDecay: number; // λ
  zero: Sign | "hold";
  gradientScale?: number;
}

export interface AdamWOptions {
  lr: number; // η
  beta1: number; // β₁
  beta2: number; // β₂
  eps: number; // ε
  weightDecay: number; // λ
  step: number; // t: 1 for the first update
  gradientScale?: number;
}

export interface SgdOptions {
  lr: number; // η
  momentum: number; // μ
  dampening: number;
  weightDecay: number; // λ
  nesterov: boolean;
  first: boolean; // whether this is the first update
  gradientScale?: number;
}

export interface MomentsOptions {
  beta1: number; // β₁
  beta2: number; // β₂
  gradientScale?: number;
}

/**
 * u = (m · first) / (√v · second + ε) + λ θ. Adam's corrections are first = 1/(1 − β₁ᵗ) and second = 1/√(1 − β₂ᵗ);
 * without them both are 1.
 */
export interface AdamUpdate {
  first: number;
  second: number;
  eps: number; // ε
  weightDecay: number; // λ
}

/** A momentum of one magnitude: ±scale by its signs, 0 where it is held; ceil(n/8) bytes each. */
export interface PackedMomentum {
  signs: Uint8Array; // 1 = plus
  scale: number;
  hold?: Uint8Array | undefined;
}

export interface RefreshOptions {
  beta1: number;
  beta2: number;
  eps: number;
  root: boolean; // whether the ratio is that of the square roots
}

/** X ← keep X + scale P Qᵀ, for factors of r = `rank` columns. */
export interface LowRankChange extends Change {
  rank: number;
}

export interface NormalizeOptions {
  rank: number; // r
  threshold: number; // relative to the largest norm
}
