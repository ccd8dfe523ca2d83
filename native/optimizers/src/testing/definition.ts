/**
 * The definition of every kernel, in plain loops. The tests compare all implementations with it.
 *
 * The arithmetic is fp32: every operation is rounded (`r`). A double holds the exact product of two fp32 numbers, and
 * their sum in double rounds to the same fp32 as the exact sum, so Math.fround gives IEEE fp32. `inDoubles` is the same
 * arithmetic in fp64.
 */
import type {
  AdamUpdate,
  AdamWOptions,
  Change,
  LionMixOptions,
  LionStepOptions,
  LionVoteOptions,
  LowRankChange,
  MomentsOptions,
  NormalizeOptions,
  PackedMomentum,
  RefreshOptions,
  SgdOptions,
} from "../options.ts";

type Floats = Float32Array | Float64Array;

let r: (x: number) => number = Math.fround;

/**
 * Runs the definitions in fp64, on Float64Arrays, beside formulas in fp64: what still differs is no rounding to fp32.
 */
export function inDoubles(run: () => void): void {
  r = (x) => x;
  try {
    run();
  } finally {
    r = Math.fround;
  }
}

/** a x + b y */
const mix = (a: number, x: number, b: number, y: number): number => r(r(a * x) + r(b * y));

/** θ ← keep θ + scale · move, for move −1, 0 or 1. */
function applied(θ: number, move: number, { keep, scale }: Change): number {
  const kept = r(θ * r(keep));
  return move === 0 ? kept : r(kept + move * r(scale));
}

const signOf = (c: number, zero: "plus" | "minus" | "hold"): number => {
  if (c !== 0) return c > 0 ? 1 : -1;
  return zero === "hold" ? 0 : zero === "plus" ? 1 : -1;
};

export function lionVote(
  wire: Uint8Array,
  m: Floats,
  g: Floats,
  { beta1, beta2, zero, gradientScale = 1 }: LionVoteOptions,
): void {
  wire.fill(0);
  for (let i = 0; i < m.length; i++) {
    const scaled = r(g[i]! * r(gradientScale));
    const c = mix(r(beta1), m[i]!, r(1 - beta1), scaled);
    if (signOf(c, zero) > 0) wire[i >> 3]! |= 1 << (i & 7);
    m[i] = mix(r(beta2), m[i]!, r(1 - beta2), scaled);
  }
}

export function lionMix(c: Floats, m: Floats, g: Floats, { beta1, beta2, gradientScale = 1 }: LionMixOptions): void {
  for (let i = 0; i < m.length; i++) {
    const scaled = r(g[i]! * r(gradientScale));
    c[i] = mix(r(beta1), m[i]!, r(1 - beta1), scaled);
    m[i] = mix(r(beta2), m[i]!, r(1 - beta2), scaled);
  }
}

export function lionStep(
  θ: Floats,
  m: Floats,
  g: Floats,
  { lr, beta1, beta2, weightDecay, zero, gradientScale = 1 }: LionStepOptions,
): void {
  for (let i = 0; i < m.length; i++) {
    const scaled = r(g[i]! * r(gradientScale));
    const c = mix(r(beta1), m[i]!, r(1 - beta1), scaled);
    θ[i] = applied(θ[i]!, signOf(c, zero), { keep: 1 - lr * weightDecay, scale: -lr });
    m[i] = mix(r(beta2), m[i]!, r(1 - beta2), scaled);
  }
}

const bit = (wire: Uint8Array, i: number): number => (wire[i >> 3]! >> (i & 7)) & 1;

export function applySigns(θ: Floats, wire: Uint8Array, change: Change): void {
  for (let i = 0; i < θ.length; i++) θ[i] = applied(θ[i]!, bit(wire, i) ? 1 : -1, change);
}

export function applyTernary(θ: Floats, plus: Uint8Array, nonzero: Uint8Array, change: Change): void {
  for (let i = 0; i < θ.length; i++) θ[i] = applied(θ[i]!, bit(nonzero, i) ? (bit(plus, i) ? 1 : -1) : 0, change);
}

export function applyTally(θ: Floats, planes: readonly Uint8Array[], ranks: number, { keep, scale }: Change): void {
  for (let i = 0; i < θ.length; i++) {
    const c = planes.reduce((count, plane, k) => count + bit(plane, i) * 2 ** k, 0);
    θ[i] = r(r(θ[i]! * r(keep)) + r(r((2 * c - ranks) / ranks) * r(scale)));
  }
}

export function adamwStep(
  θ: Floats,
  m: Floats,
  v: Floats,
  g: Floats,
  { lr, beta1, beta2, eps, weightDecay, step, gradientScale = 1 }: AdamWOptions,
): void {
  const rootOfCorrection = Math.sqrt(1 - beta2 ** step);
  const rate = r((lr * rootOfCorrection) / (1 - beta1 ** step));
  const epsilon = r(eps * rootOfCorrection);
  for (let i = 0; i < θ.length; i++) {
    const scaled = r(g[i]! * r(gradientScale));
    m[i] = mix(r(beta1), m[i]!, r(1 - beta1), scaled);
    v[i] = r(r(r(beta2) * v[i]!) + r(r(r(1 - beta2) * scaled) * scaled));
    const move = r(r(rate * m[i]!) / r(r(Math.sqrt(v[i]!)) + epsilon));
    θ[i] = r(r(θ[i]! * r(1 - lr * weightDecay)) - move);
  }
}

export function accumulateMoments(
  m: Floats,
  v: Floats,
  g: Floats,
  { beta1, beta2, gradientScale = 1 }: MomentsOptions,
): void {
  for (let i = 0; i < m.length; i++) {
    const scaled = r(g[i]! * r(gradientScale));
    m[i] = mix(r(beta1), m[i]!, r(1 - beta1), scaled);
    v[i] = r(r(r(beta2) * v[i]!) + r(r(r(1 - beta2) * scaled) * scaled));
  }
}

export function unpacked({ signs, scale, hold }: PackedMomentum, n: number): Float32Array {
  return Float32Array.from({ length: n }, (_, i) => (bitOf(hold, i) ? 0 : bitOf(signs, i) ? scale : 0 - scale));
}

const bitOf = (bits: Uint8Array | undefined, i: number): number => (bits ? (bits[i >> 3]! >> (i & 7)) & 1 : 0);

export function applyAdamUpdate(
  θ: Floats,
  m: Floats,
  v: Floats,
  { first, second, eps, weightDecay, rate }: AdamUpdate & { rate: number },
): void {
  for (let i = 0; i < θ.length; i++) {
    const adam = r(r(m[i]! * r(first)) / r(r(r(Math.sqrt(v[i]!)) * r(second)) + r(eps)));
    θ[i] = r(θ[i]! - r(r(rate) * r(adam + r(r(weightDecay) * θ[i]!))));
  }
}

export function refreshVariance(
  fresh: Floats,
  frozen: Floats,
  m: Floats,
  last: Floats,
  { beta1, beta2, eps, root }: RefreshOptions,
): number {
  const size = (v: number): number => r(root ? r(Math.sqrt(v)) + r(eps) : v + r(eps * eps));
  let most = 0;
  for (let i = 0; i < fresh.length; i++) {
    const g = r(r(m[i]! - r(r(beta1) * last[i]!)) / r(1 - beta1));
    fresh[i] = r(r(r(beta2) * fresh[i]!) + r(r(r(1 - beta2) * g) * g));
    if (frozen[i]! > 0) most = Math.max(most, r(size(frozen[i]!) / size(fresh[i]!)));
  }
  return most;
}

export function sgdStep(
  θ: Floats,
  m: Floats | undefined,
  g: Floats,
  { lr, momentum, dampening, weightDecay, nesterov, first, gradientScale = 1 }: SgdOptions,
): void {
  for (let i = 0; i < θ.length; i++) {
    const d = mix(g[i]!, r(gradientScale), r(weightDecay), θ[i]!);
    let u = d;
    if (m) {
      m[i] = first ? mix(0, m[i]!, 1, d) : mix(r(momentum), m[i]!, r(1 - dampening), d);
      u = nesterov ? r(d + r(r(momentum) * m[i]!)) : m[i]!;
    }
    θ[i] = r(θ[i]! - r(r(lr) * u));
  }
}

/** a b + c, rounded once. The exact product is a double; its sum with c is rounded to odd there, and then to fp32. */
function fma(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  const other = sum - product;
  const rest = product - (sum - other) + (c - other); // what the sum has lost: exact
  if (rest === 0 || !Number.isFinite(sum)) return r(sum);
  double[0] = sum;
  if ((words[0]! & 1n) === 0n) words[0] = words[0]! + (rest > 0 === sum > 0 ? 1n : -1n);
  return r(double[0]);
}
const double = new Float64Array(1);
const words = new BigInt64Array(double.buffer);

export function addLowRank(x: Floats, p: Floats, q: Floats, { rank, keep, scale }: LowRankChange): void {
  const n = q.length / rank;
  for (let i = 0; i < p.length / rank; i++)
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let k = 0; k < rank; k++) sum = fma(p[i * rank + k]!, q[j * rank + k]!, sum);
      x[i * n + j] = mix(r(keep), x[i * n + j]!, r(scale), sum);
    }
}

export function normalizeColumns(q: Floats, columns: Floats, { rank, threshold }: NormalizeOptions): void {
  const norms = Array.from({ length: rank }, (_, k) => {
    let sum = 0;
    for (let i = k; i < columns.length; i += rank) sum += columns[i]! ** 2;
    return Math.sqrt(sum);
  });
  const largest = Math.max(...norms);
  for (const [i, value] of columns.entries()) {
    const norm = norms[i % rank]!;
    columns[i] = norm > threshold * largest ? value / norm : 0;
    if (norm > threshold * largest) q[i] = columns[i]!;
  }
}
