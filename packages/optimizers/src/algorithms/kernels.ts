/** The fused kernels on tensors and packed signs. */
import { copy } from "@terse/collectives";
import { type Encode, PackedBits, type Tally, Ternary } from "@terse/exchange";
import * as native from "@terse/native-optimizers";
import {
  type Change,
  type LionMixOptions,
  type LionVoteOptions,
  type NativeBuffer,
  NotFiniteError,
} from "@terse/native-optimizers";
import { call, emptyLike, keep, noGrad, scope, type Tensor } from "@terse/tensor";

/**
 * u = sign(β₁ m + (1 − β₁) g) and m ← β₂ m + (1 − β₂) g, in one pass over m and g; g is multiplied by gradientScale
 * first. The kernel runs piece by piece, when the exchange needs the signs, so it computes the others while the first
 * ones are sent. A dense vote reads β₁ m + (1 − β₁) g in place of the signs, which is computed at once.
 */
export function lionVote(m: Tensor, g: Tensor, options: LionVoteOptions): PackedBits {
  const encode: Encode = (u, from, to) => {
    // Now, because a tensor may have been disposed since the request.
    const [momentum, gradient] = [memoryOf(m), memoryOf(g)];
    try {
      const signs = u.signs.subarray(from / 8, Math.ceil(to / 8));
      native.lionVote(signs, slice(momentum, from, to), slice(gradient, from, to), options);
    } catch (error) {
      if (!(error instanceof NotFiniteError)) throw error;
      u.firstNonFinite ??= from + error.index;
    }
  };
  const write = (into: Float32Array) => {
    using c = lionMix(m, g, options);
    copy(into, c);
  };
  return new PackedBits(m.length, undefined, encode, { zero: options.zero, write });
}

/** Where a tensor's elements are. */
export function memoryOf({ pointer, length, dtype, device }: Tensor): NativeBuffer {
  return { pointer, length, dtype, device };
}

/** The elements [from, to) of f32 memory. */
export function slice({ pointer, dtype, device }: NativeBuffer, from: number, to: number): NativeBuffer {
  return { pointer: pointer + BigInt(4 * from), length: to - from, dtype, device };
}

/** The elements [from, to) of several arrays. */
export const slices = <Memories extends readonly NativeBuffer[]>(
  memories: readonly [...Memories],
  from: number,
  to: number,
) => memories.map((memory) => slice(memory, from, to)) as { [K in keyof Memories]: NativeBuffer };

/**
 * c = β₁ m + (1 − β₁) g, before its sign is taken, and m ← β₂ m + (1 − β₂) g; g is multiplied by gradientScale first.
 */
export function lionMix(m: Tensor, g: Tensor, options: LionMixOptions): Tensor {
  const c = emptyLike(m);
  native.lionMix(c, m, g, options);
  return c;
}

/** θ ← keep θ + scale v, in one pass over θ; v is −1, 0, +1, or the mean of P signs. */
export function applyVote(θ: Tensor, v: PackedBits | Ternary | Tally, change: Change): void {
  if (v instanceof PackedBits) native.applySigns(θ, v.signs, change);
  else if (v instanceof Ternary) native.applyTernary(θ, v.plus.signs, v.nonzero.signs, change);
  else
    native.applyTally(
      θ,
      v.planes.map(({ signs }) => signs),
      v.ranks,
      change,
    );
}

/** A new tensor or a view. Frees the intermediate ones. */
export const resultOf = (make: () => Tensor): Tensor => noGrad(() => scope(() => keep(make())));

/**
 * θ ← keep θ + scale sign(x), where sign(0) is 0. Multiples of a sign are exact, so processors with and without fused
 * multiply-add agree.
 */
export function applySign(θ: Tensor, x: Tensor, { keep, scale }: Change): void {
  noGrad(() => scope(() => θ.mul_(keep).add_(x.sign(), { alpha: scale })));
}

/** into ← A B */
export function multiply(A: Tensor, B: Tensor, into: Tensor): void {
  noGrad(() => call("aten::mm.out", A, B, into));
}
