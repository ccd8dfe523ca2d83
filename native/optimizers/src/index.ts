/**
 * Fused optimizer kernels: each array is read once. Synchronous, in place, on as many threads as `useThreads` says, fp32, any alignment.
 *
 * The arithmetic is fp32 without fused multiply-add, the same bits from every implementation and on every machine:
 * β and η are rounded to fp32 once, 1 − β and 1 − η λ are computed in double first. `gradientScale` multiplies every g before
 * anything else, so that clipping costs no pass of its own.
 *
 * What Lion, Lion Cub and clipping need takes floats on a GPU too (`device: "cuda:0"`), packed signs staying in typed arrays: the same
 * bits. Work goes into the device's default stream, where libtorch's does; what returns a number or writes signs waits for it.
 *
 * Every function throws a TypeError where memory is not f32 (u8 for packed signs) or elsewhere, a RangeError where lengths do not fit, and
 * NativeMissingError where the addon is not built. Arrays of one call may not overlap.
 */
import { type BufferLike, NotFiniteError } from "@terse/native-loader";
import {
  type AdamWKernels,
  type AdamWOptions,
  type Change,
  choose,
  type LionKernels,
  type LionStepOptions,
  type LionVoteOptions,
  onCuda,
  open,
  openCuda,
  type ReductionKernels,
} from "./kernels.ts";

export { type BufferLike, type NativeBuffer, NativeMissingError, NotFiniteError } from "@terse/native-loader";
export type { AdamWOptions, Change, LionStepOptions, LionVoteOptions, Sign } from "./kernels.ts";

/**
 * The first half of a Lion Cub step, one pass over m and g (n floats each):
 *
 *   wire ← sign(β₁ m + (1 − β₁) g), one bit a float, ceil(n/8) bytes, pad bits 0; an exact zero counts as `zero`
 *   m    ← β₂ m + (1 − β₂) g
 *
 * NaN or infinity in m or g: NotFiniteError with the first one's index; m is then updated in part, and `wire` is undefined.
 */
export function lionVote(wire: Uint8Array, m: BufferLike, g: BufferLike, options: LionVoteOptions): void {
  accept("lionVote", m, g, lion(m).vote(wire, m, g, options));
}

/**
 * A plain Lion step, one pass over θ, m and g (n floats each):
 *
 *   c ← β₁ m + (1 − β₁) g
 *   θ ← (1 − η λ) θ − η sign(c)      zero "hold": an exact zero of c does not move θ, as in the Lion paper
 *   m ← β₂ m + (1 − β₂) g
 *
 * The same bits as lionVote then applySigns with keep = 1 − η λ and scale = −η. NaN or infinity in m or g: NotFiniteError with
 * the first one's index; θ and m are then updated in part.
 */
export function lionStep(θ: BufferLike, m: BufferLike, g: BufferLike, options: LionStepOptions): void {
  accept("lionStep", m, g, lion(θ).step(θ, m, g, options));
}

/** θ ← keep θ + scale · (±1), one pass. wire: ceil(n/8) bytes for the n floats of θ, bit 1 = plus. */
export function applySigns(θ: BufferLike, wire: Uint8Array, change: Change): void {
  lion(θ).applySigns(θ, wire, change);
}

/** θ ← keep θ + scale · (±1 by `plus` where `nonzero` is 1, else 0), one pass. Each plane: ceil(n/8) bytes. */
export function applyTernary(θ: BufferLike, plus: Uint8Array, nonzero: Uint8Array, change: Change): void {
  lion(θ).applyTernary(θ, plus, nonzero, change);
}

/**
 * θ ← keep θ + scale · (2 c − P)/P, one pass; c is the number of plus votes of P = `ranks` (1 to 1024), planes[k] its bit k,
 * planes.length = ceil(log2(P + 1)). Where all agree this is applySigns, bit for bit.
 */
export function applyTally(θ: BufferLike, planes: readonly Uint8Array[], ranks: number, change: Change): void {
  lion(θ).applyTally(θ, planes, ranks, change);
}

/**
 * AdamW as in PyTorch, one pass over θ, m, v and g (n floats each); t = options.step is 1 for the first update:
 *
 *   m ← β₁ m + (1 − β₁) g
 *   v ← β₂ v + (1 − β₂) g²
 *   θ ← (1 − η λ) θ − η m̂ / (√v̂ + ε)      m̂ = m / (1 − β₁ᵗ)   v̂ = v / (1 − β₂ᵗ), the corrections in double
 *
 * NaN or infinity in m, v, g, or in the new v (|g| above about 10¹⁹ squares to infinity): NotFiniteError with the first one's
 * index; θ, m and v are then updated in part.
 */
export function adamwStep(θ: BufferLike, m: BufferLike, v: BufferLike, g: BufferLike, options: AdamWOptions): void {
  accept("adamwStep", m, g, adamw().step(θ, m, v, g, options));
}

/** Σ x², in fp64 and in an order that depends on the length alone, so it is the same on every machine. NaN and infinity propagate. */
export function sumOfSquares(x: BufferLike): number {
  return (onCuda(x) ? openCuda() : reductions()).sumOfSquares(x);
}

/**
 * 64 bits of the elements' bits and their order, the same on every machine: what ranks compare to know that they hold the same
 * parameters. Not for use against an adversary.
 */
export const fingerprint = (x: BufferLike): bigint => (onCuda(x) ? openCuda() : open()).fingerprint(x);

/**
 * How many threads share a kernel from now on, the caller's included; 1 at first. The bits do not depend on it. One core reaches a
 * part of the memory's speed; short vectors stay on one thread.
 */
export const useThreads = (threads: number): void => open().useThreads(threads);

/** The implementation that runs: "avx2", "scalar". The environment variable TERSE_IMPLEMENTATION forces one. */
export const implementation = (): string => lion().implementation;

/** Address of the first element: benchmarks align by it. */
export const addressOf = (memory: BufferLike): bigint => open().addressOf(memory);

let chosenLion: LionKernels | undefined;
/** For floats where these are; without any, the CPU's. */
function lion(floats?: BufferLike): LionKernels {
  if (floats && onCuda(floats)) return openCuda();
  chosenLion ??= choose(open().lions());
  return chosenLion;
}

let chosenAdamW: AdamWKernels | undefined;
function adamw(): AdamWKernels {
  chosenAdamW ??= choose(open().adamws());
  return chosenAdamW;
}

let chosenReductions: ReductionKernels | undefined;
function reductions(): ReductionKernels {
  chosenReductions ??= choose(open().reductions());
  return chosenReductions;
}

function accept(where: string, m: BufferLike, g: BufferLike, accepted: number): void {
  if (accepted === m.length) return;
  const gradient = g instanceof Float32Array ? g[accepted] : undefined;
  throw new NotFiniteError(
    `${where}: ${gradient === undefined || Number.isFinite(gradient) ? "the state or g" : "g"}`,
    accepted,
    gradient !== undefined && !Number.isFinite(gradient) ? gradient : undefined,
  );
}
