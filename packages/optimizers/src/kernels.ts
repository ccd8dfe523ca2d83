/** The fused kernels on tensors and packed signs. */
import { Bits, type Tally, Ternary } from "@terse/exchange";
import * as native from "@terse/native-optimizers";
import { NotFiniteError } from "@terse/native-optimizers";
import type { Tensor } from "@terse/tensor";

/** u = sign(β₁ m + (1 − β₁) g) and m ← β₂ m + (1 − β₂) g, in one pass over m and g, which is multiplied by gradientScale first. */
export function lionVote(
  m: Tensor,
  g: Tensor,
  options: { beta1: number; beta2: number; zero: "plus" | "minus"; gradientScale: number },
): Bits {
  const u = new Bits(m.length);
  try {
    native.lionVote(u.signs, m, g, options);
  } catch (error) {
    if (!(error instanceof NotFiniteError)) throw error;
    u.firstNonFinite = error.index;
  }
  return u;
}

/** θ ← keep θ + scale v, in one pass over θ; v is −1, 0, +1, or the mean of P signs. */
export function applyVote(
  θ: Tensor,
  v: Bits | Ternary | Tally,
  { keep, scale }: { keep: number; scale: number },
): void {
  const change = { keep, scale };
  if (v instanceof Bits) native.applySigns(θ, v.signs, change);
  else if (v instanceof Ternary) native.applyTernary(θ, v.plus.signs, v.nonzero.signs, change);
  else
    native.applyTally(
      θ,
      v.planes.map(({ signs }) => signs),
      v.ranks,
      change,
    );
}
