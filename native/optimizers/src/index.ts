/**
 * Fused optimizer kernels: each reads every array once. They are synchronous, work in place on f32 of any alignment,
 * and use as many threads as `useThreads` sets.
 *
 * The arithmetic is fp32 without fused multiply-add, except in the sums of `addLowRank`, where
 * every one is fused. So every implementation gives the same bits on every machine. β and η are rounded to fp32 once;
 * 1 − β and 1 − η λ are computed in double before that. `gradientScale` multiplies every g first, so that clipping
 * needs no pass of its own.
 *
 * All functions also take floats on a GPU (`device: "cuda:0"`) and give the same bits; packed signs stay in typed
 * arrays. Kernels run in the device's default stream, as libtorch's do. A function that returns a number, writes signs
 * or refuses elements waits for the device.
 *
 * Every function throws a TypeError for a wrong dtype (f32; packed signs: u8) or device, a RangeError for a wrong
 * length, and NativeMissingError where the addon is not built. The arrays of one call must not overlap.
 */
import { type BufferLike, NotFiniteError } from "@terse/native-loader";
import { type CudaKernels, choose, onCuda, open, openCuda } from "./kernels.ts";
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
} from "./options.ts";

export {
  type BufferLike,
  checkOptions,
  type NativeBuffer,
  NativeMissingError,
  NotFiniteError,
} from "@terse/native-loader";
export type * from "./options.ts";

/**
 * The first half of a Lion Cub step, in one pass over m and g (n floats each):
 *
 *   wire ← sign(β₁ m + (1 − β₁) g), one bit per float, ceil(n/8) bytes, pad bits 0; `zero` is the sign of an exact zero
 *   m    ← β₂ m + (1 − β₂) g
 *
 * Throws NotFiniteError with the index of the first NaN or infinity in m or g; then m is updated in part and `wire` is
 * undefined.
 */
export function lionVote(wire: Uint8Array, m: BufferLike, g: BufferLike, options: LionVoteOptions): void {
  accept("lionVote", m, g, lion(m).vote(wire, m, g, options));
}

/**
 * The first half of a step whose messages have more than one bit, in one pass over m and g (n floats each):
 *
 *   c ← β₁ m + (1 − β₁) g
 *   m ← β₂ m + (1 − β₂) g
 *
 * Elements that are not finite are written as they are.
 */
export function lionMix(c: BufferLike, m: BufferLike, g: BufferLike, options: LionMixOptions): void {
  lion(m).mix(c, m, g, options);
}

/**
 * A whole Lion step, in one pass over θ, m and g (n floats each):
 *
 *   c ← β₁ m + (1 − β₁) g
 *   θ ← (1 − η λ) θ − η sign(c)      zero "hold": an exact zero of c does not move θ, as in the Lion paper
 *   m ← β₂ m + (1 − β₂) g
 *
 * Gives the bits of lionVote followed by applySigns with keep = 1 − η λ and scale = −η. Throws NotFiniteError with the
 * index of the first NaN or infinity in m or g; then θ and m are updated in part.
 */
export function lionStep(θ: BufferLike, m: BufferLike, g: BufferLike, options: LionStepOptions): void {
  accept("lionStep", m, g, lion(θ).step(θ, m, g, options));
}

/** θ ← keep θ + scale · (±1), in one pass. wire: ceil(n/8) bytes for the n floats of θ, bit 1 = plus. */
export function applySigns(θ: BufferLike, wire: Uint8Array, change: Change): void {
  lion(θ).applySigns(θ, wire, change);
}

/**
 * θ ← keep θ + scale · (±1 by `plus` where `nonzero` is 1, else 0), in one pass. `plus` and `nonzero`: ceil(n/8) bytes
 * each.
 */
export function applyTernary(θ: BufferLike, plus: Uint8Array, nonzero: Uint8Array, change: Change): void {
  lion(θ).applyTernary(θ, plus, nonzero, change);
}

/**
 * θ ← keep θ + scale · (2 c − P)/P, in one pass. c is the number of plus votes of P = `ranks` (1 to 1024), planes[k] is
 * bit k of c, planes.length = ceil(log2(P + 1)). Where all ranks agree, this gives the bits of applySigns.
 */
export function applyTally(θ: BufferLike, planes: readonly Uint8Array[], ranks: number, change: Change): void {
  lion(θ).applyTally(θ, planes, ranks, change);
}

/**
 * AdamW as in PyTorch, in one pass over θ, m, v and g (n floats each); t = options.step is 1 for the first update:
 *
 *   m ← β₁ m + (1 − β₁) g
 *   v ← β₂ v + (1 − β₂) g²
 *   θ ← (1 − η λ) θ − η m̂ / (√v̂ + ε)      m̂ = m / (1 − β₁ᵗ)   v̂ = v / (1 − β₂ᵗ), the corrections in double
 *
 * Throws NotFiniteError with the index of the first NaN or infinity in m, v, g or the new v (the square of |g| > 10¹⁹
 * or so is infinite); then θ, m and v are updated in part.
 */
export function adamwStep(θ: BufferLike, m: BufferLike, v: BufferLike, g: BufferLike, options: AdamWOptions): void {
  accept("adamwStep", m, g, adamw(θ).step(θ, m, v, g, options));
}

/**
 * SGD as torch.optim.SGD, in one pass over θ, m and g (n floats each); m is undefined where there is no momentum:
 *
 *   d ← g + λ θ
 *   m ← μ m + (1 − dampening) d      the first time m ← d
 *   θ ← θ − η m                      with nesterov θ ← θ − η (d + μ m), without momentum θ ← θ − η d
 *
 * Throws NotFiniteError with the index of the first element whose change is not finite; then θ and m are updated in
 * part.
 */
export function sgdStep(θ: BufferLike, m: BufferLike | undefined, g: BufferLike, options: SgdOptions): void {
  accept("sgdStep", θ, g, sgd(θ).step(θ, m, g, options));
}

/**
 * Adam's moments, in one pass over m, v and g (n floats each): m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g². Throws
 * NotFiniteError as adamwStep does.
 */
export function accumulateMoments(m: BufferLike, v: BufferLike, g: BufferLike, options: MomentsOptions): void {
  accept("accumulateMoments", m, g, moments(m).accumulate(m, v, g, options));
}

/**
 * ‖θ‖₂ and ‖u‖₂ of an update u of Adam's form, in one pass. Added in fp64 in an order that depends only on the length.
 */
export function adamNorms(
  θ: BufferLike,
  m: BufferLike,
  v: BufferLike,
  update: AdamUpdate,
): [θ: number, update: number] {
  const [weights, updates] = moments(θ).squares(θ, m, v, update);
  return [Math.sqrt(weights), Math.sqrt(updates)];
}

/**
 * `accumulateMoments`, then `adamNorms` with the new moments: on the CPU in one pass over θ, m, v and g. The same bits,
 * and the same errors.
 */
export function accumulateAndMeasure(
  θ: BufferLike,
  m: BufferLike,
  v: BufferLike,
  g: BufferLike,
  options: MomentsOptions,
  update: AdamUpdate,
): [θ: number, update: number] {
  const both = moments(θ).accumulateAndSquares;
  if (!both) {
    accumulateMoments(m, v, g, options);
    return adamNorms(θ, m, v, update);
  }
  const [weights, updates, accepted] = both(θ, m, v, g, options, update);
  accept("accumulateAndMeasure", m, g, accepted);
  return [Math.sqrt(weights), Math.sqrt(updates)];
}

/**
 * θ ← θ − rate · u, with u of Adam's form, in one pass over θ, m and v. With a packed momentum m ← that first, in the
 * same pass, on the CPU.
 */
export function applyAdamUpdate(
  θ: BufferLike,
  m: BufferLike,
  v: BufferLike,
  update: AdamUpdate & { rate: number },
  packed?: PackedMomentum,
): void {
  onlyOnCpu("applyAdamUpdate", θ, packed);
  moments(θ).apply(θ, m, v, update, packed);
}

/**
 * The second moment that 1-bit LAMB keeps beside the frozen one, from the gradient that two averaged momenta imply, in
 * one pass:
 *
 *   g     ← (m − β₁ last) / (1 − β₁)
 *   fresh ← β₂ fresh + (1 − β₂) g²
 *
 * Returns max (frozen + ε²)/(fresh + ε²), with `root` max (√frozen + ε)/(√fresh + ε), over the elements with
 * frozen > 0, and 0 without any. With a packed momentum in place of `last`, the last momentum is m, and m ← the packed
 * one in the same pass, on the CPU.
 */
export function refreshVariance(
  fresh: BufferLike,
  frozen: BufferLike,
  m: BufferLike,
  last: BufferLike | PackedMomentum,
  options: RefreshOptions,
): number {
  onlyOnCpu("refreshVariance", fresh, "signs" in last ? last : undefined);
  return moments(fresh).refresh(fresh, frozen, m, last, options);
}

function onlyOnCpu(where: string, floats: BufferLike, packed: PackedMomentum | undefined): void {
  if (packed && onCuda(floats))
    throw new TypeError(
      `${where}: a packed momentum needs arrays on the CPU, and these are on a GPU; unpack it first.`,
    );
}

/**
 * X ← keep X + scale P Qᵀ, row by row in memory. Shapes: X (m, n), P (m, r), Q (n, r). An element of P Qᵀ is a chain of
 * fused multiply-adds in the order of the r columns, so its bits do not depend on the machine, as those of libtorch's
 * matrix products do.
 */
export function addLowRank(x: BufferLike, p: BufferLike, q: BufferLike, change: LowRankChange): void {
  lowRank(x).add(x, p, q, change);
}

/**
 * Columns of norm 1: columns ← columns / ‖column‖, and q ← the same. Both are (n, r). Where a norm is at most
 * `threshold` times the largest one, the column is round-off: it becomes 0, and q keeps its own. Norms are added in
 * fp64 in the order of rows.
 */
export function normalizeColumns(q: BufferLike, columns: BufferLike, options: NormalizeOptions): void {
  lowRank(q).normalize(q, columns, options);
}

/**
 * Σ x² in fp64, added in an order that depends only on the length, so it is the same on every machine. NaN and infinity
 * propagate.
 */
export function sumOfSquares(x: BufferLike): number {
  return reductions(x).sumOfSquares(x);
}

/**
 * d ← a − b, and returns Σ d², as `sumOfSquares` adds it: in one pass over d, a and b, which are on the CPU.
 */
export function difference(d: BufferLike, a: BufferLike, b: BufferLike): number {
  return reductions(d).difference!(d, a, b);
}

/**
 * A 64-bit hash of the elements' bits and their order, the same on every machine. Ranks compare it to check that their
 * parameters are equal. It is not safe against an adversary.
 */
export const fingerprint = (x: BufferLike): bigint => (onCuda(x) ? openCuda() : open()).fingerprint(x);

/**
 * Sets how many threads share a kernel, the caller's included; 1 at the start. The results do not depend on it. One
 * core alone does not reach the memory's bandwidth. Short vectors always use one thread.
 */
export const useThreads = (threads: number): void => open().useThreads(threads);

/**
 * Kernels run on the calling thread's team of threads where it has one, and not on threads of their own. `team`: the
 * address of a `terse_parallel_team` (include/terse/parallel.h), which stays there as long as the process.
 */
export const useTeam = (team: bigint): void => open().useTeam(team);

/**
 * The implementation in use: "avx512", "avx2" or "scalar". The environment variable TERSE_IMPLEMENTATION forces one.
 */
export const implementation = (): string => lion().implementation;

/** Address of the first element. Benchmarks align arrays by it. */
export const addressOf = (buffer: BufferLike): bigint => open().addressOf(buffer);

/** The kernels of a family for the device of `floats`; without an argument, those for the CPU. */
function family<Name extends Exclude<keyof CudaKernels, "fingerprint">>(
  onGpu: Name,
  onCpu: () => readonly CudaKernels[Name][],
): (floats?: BufferLike) => CudaKernels[Name] {
  let chosen: CudaKernels[Name] | undefined;
  return (floats) => {
    if (floats && onCuda(floats)) return openCuda()[onGpu];
    chosen ??= choose(onCpu());
    return chosen;
  };
}

const lion = family("lion", () => open().lions());
const adamw = family("adamw", () => open().adamws());
const sgd = family("sgd", () => open().sgds());
const moments = family("moments", () => open().moments());
const lowRank = family("lowRank", () => open().lowRanks());
const reductions = family("reductions", () => open().reductions());

function accept(where: string, m: BufferLike, g: BufferLike, accepted: number): void {
  if (accepted === m.length) return;
  const gradient = g instanceof Float32Array ? g[accepted] : undefined;
  throw new NotFiniteError(
    `${where}: ${gradient === undefined || Number.isFinite(gradient) ? "the state or g" : "g"}`,
    accepted,
    gradient !== undefined && !Number.isFinite(gradient) ? gradient : undefined,
  );
}
