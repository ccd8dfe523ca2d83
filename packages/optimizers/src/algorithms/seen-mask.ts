/**
 * The mask of elements that have had a gradient. One bit has no zero, so an element whose gradient is always 0, such as
 * a row of an embedding that is never read, is moved by every vote. Ishikawa et al. 2024, "Lion Cub", §3.2,
 * https://arxiv.org/abs/2411.16462, masks such elements.
 *
 *   every k-th step, from the first   seen ← seen or (m ≠ 0 on any rank)   counted by a vote: the same on every rank
 *   in each step                      θ of an element that is not seen only decays
 *
 * The authors' code masks by the zeros of the rank itself: where another rank has a gradient, the ranks' parameters
 * then differ. An element that gets its first gradient between two counts waits for the next one.
 *
 * Sent every k steps: 1 message, n/8 (P − 1)/P bytes up and ⌈log2(P + 1)⌉ times that down.
 */
import { sign } from "@terse/codecs";
import { type Message, PackedBits, type Tally, type Ternary } from "@terse/exchange";
import { applyTernary, type Change } from "@terse/native-optimizers";
import { nonNegativeInteger, v } from "@terse/options";
import { noGrad, type Tensor } from "@terse/tensor";

/** The option: k, or 0 for no mask. */
export const maskEvery = v.optional(nonNegativeInteger, 0);

/** Whether the ranks count in this step, after its momentum has been updated. */
export const countsSeen = (every: number, step: number): boolean => every > 0 && step % every === 0;

export const maskMessages = (every: number, n: number, step: number): Message[] =>
  countsSeen(every, step) ? [{ kind: "vote", n, outcome: "tally" }] : [];

/** seen ← seen or counted on any rank, for a tensor of 0 and 1. */
export function addSeen(seen: Tensor, { planes }: Tally): void {
  const bits = bitsOf(seen);
  for (const { signs } of planes) for (const [i, byte] of signs.entries()) bits[i]! |= byte;
  applyTernary(seen, bits, bits, { keep: 0, scale: 1 });
}

/** θ ← keep θ + scale v, with v = 0 where an element is not seen. */
export function applyMasked(θ: Tensor, v: PackedBits | Ternary, seen: Tensor, change: Change): void {
  const bits = bitsOf(seen);
  const [plus, moving] =
    v instanceof PackedBits ? [v, bits] : [v.plus, bits.map((byte, i) => byte & v.nonzero.signs[i]!)];
  applyTernary(θ, plus.signs, moving, change);
}

/** One bit an element, 1 where x is not 0. */
export function nonzero(x: Tensor): PackedBits {
  using magnitudes = noGrad(() => x.abs());
  return aboveZero(magnitudes);
}

const bitsOf = (seen: Tensor): Uint8Array => aboveZero(seen).signs;

function aboveZero(x: Tensor): PackedBits {
  const bits = new PackedBits(x.length);
  using here = x.to({ device: "cpu" }); // where codecs work
  sign.encode(bits.signs, here, { zero: "minus" });
  return bits;
}
