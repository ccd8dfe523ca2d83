import { type Addon, type BufferLike, cudaLibrary, loadAddon } from "@terse/native-loader";
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

/**
 * One implementation, as in `terse/optimizers.h`. A kernel returns n, or the index of the first element that is not
 * finite.
 */
export interface LionKernels {
  readonly implementation: string; // "avx2", "scalar"
  vote(wire: Uint8Array, m: BufferLike, g: BufferLike, options: LionVoteOptions): number;
  mix(c: BufferLike, m: BufferLike, g: BufferLike, options: LionMixOptions): void;
  step(θ: BufferLike, m: BufferLike, g: BufferLike, options: LionStepOptions): number;
  applySigns(θ: BufferLike, wire: Uint8Array, change: Change): void;
  applyTernary(θ: BufferLike, plus: Uint8Array, nonzero: Uint8Array, change: Change): void;
  applyTally(θ: BufferLike, planes: readonly Uint8Array[], ranks: number, change: Change): void;
}

export interface AdamWKernels {
  readonly implementation: string;
  step(θ: BufferLike, m: BufferLike, v: BufferLike, g: BufferLike, options: AdamWOptions): number;
}

export interface SgdKernels {
  readonly implementation: string;
  step(θ: BufferLike, m: BufferLike | undefined, g: BufferLike, options: SgdOptions): number;
}

export interface MomentsKernels {
  readonly implementation: string;
  accumulate(m: BufferLike, v: BufferLike, g: BufferLike, options: MomentsOptions): number;
  squares(θ: BufferLike, m: BufferLike, v: BufferLike, update: AdamUpdate): [θ: number, update: number];
  /** `accumulate` and `squares` in one pass over memory; GPUs have no such kernel. */
  accumulateAndSquares?(
    θ: BufferLike,
    m: BufferLike,
    v: BufferLike,
    g: BufferLike,
    options: MomentsOptions,
    update: AdamUpdate,
  ): [θ: number, update: number, accepted: number];
  /** A GPU takes no packed momenta, here and below. */
  apply(
    θ: BufferLike,
    m: BufferLike,
    v: BufferLike,
    update: AdamUpdate & { rate: number },
    packed?: PackedMomentum,
  ): void;
  refresh(
    fresh: BufferLike,
    frozen: BufferLike,
    m: BufferLike,
    last: BufferLike | PackedMomentum,
    options: RefreshOptions,
  ): number;
}

export interface LowRankKernels {
  readonly implementation: string;
  add(x: BufferLike, p: BufferLike, q: BufferLike, change: LowRankChange): void;
  normalize(q: BufferLike, columns: BufferLike, options: NormalizeOptions): void;
}

export interface ReductionKernels {
  readonly implementation: string;
  sumOfSquares(x: BufferLike): number;
  /** GPUs have no such kernel. */
  difference?(d: BufferLike, a: BufferLike, b: BufferLike): number;
}

/** The kernels of `terse/optimizers_cuda.h`: floats are on a GPU, packed signs in typed arrays. */
export interface CudaKernels {
  readonly lion: LionKernels;
  readonly adamw: AdamWKernels;
  readonly sgd: SgdKernels;
  readonly moments: MomentsKernels;
  readonly lowRank: LowRankKernels;
  readonly reductions: ReductionKernels;
  fingerprint(x: BufferLike): bigint;
}

export interface OptimizersAddon {
  readonly abi: number;
  /** Every implementation that this machine can run, best first. */
  lions(): LionKernels[];
  adamws(): AdamWKernels[];
  sgds(): SgdKernels[];
  moments(): MomentsKernels[];
  lowRanks(): LowRankKernels[];
  reductions(): ReductionKernels[];
  fingerprint(x: BufferLike): bigint;
  useThreads(threads: number): void;
  useTeam(team: bigint): void;
  openCuda(library: string): CudaKernels;
  addressOf(buffer: BufferLike): bigint;
}

let addon: (Addon & OptimizersAddon) | undefined;

/** Opens the addon, once. Throws NativeMissingError where it is not built; the message says how to build it. */
export function open(): OptimizersAddon {
  addon ??= loadAddon("optimizers", import.meta.url) as Addon & OptimizersAddon;
  return addon;
}

let cudaKernels: CudaKernels | undefined;

/**
 * Opens the GPU kernels, once: the library that TERSE_OPTIMIZERS_CUDA names, else the one built in the repository.
 * Throws NativeMissingError where there is none.
 */
export const openCuda = (): CudaKernels =>
  (cudaKernels ??= open().openCuda(cudaLibrary("optimizers", import.meta.url)));

/** Whether a buffer is on a GPU. */
export const onCuda = (buffer: BufferLike): boolean => "device" in buffer && buffer.device.startsWith("cuda");

/**
 * The best of `kernels`, or the implementation that TERSE_IMPLEMENTATION names. Kernels without that implementation use
 * their next simpler one. A name that no kernels have is an Error that lists the known names.
 */
export function choose<K extends { readonly implementation: string }>(
  kernels: readonly K[],
  wanted = process.env["TERSE_IMPLEMENTATION"],
): K {
  const names = open()
    .lions()
    .map(({ implementation }) => implementation); // Lion has every implementation, best first
  // Only codecs have a TypeScript implementation; optimizers then use scalar C.
  const from = !wanted ? 0 : names.indexOf(wanted === "typescript" ? "scalar" : wanted);
  const kernel = from < 0 ? undefined : kernels.find(({ implementation }) => names.indexOf(implementation) >= from);
  if (kernel) return kernel;
  throw new Error(
    `TERSE_IMPLEMENTATION=${wanted}: the optimizer kernels have no such implementation on this machine; set one of ${names.join(", ")}.`,
  );
}
