/**
 * The local work of 1-bit Lion Cub on one rank, without communication, compared with a fused Lion step: Table A.1 of
 * the paper as a ratio.
 *
 *   plain       θ ← (1 − η λ) θ − η sign(c),  m                      one pass over θ, m, g
 *   Lion Cub    momentum, sign, pack                                 one pass over m, g
 *               vote of 8 ranks, each counts one eighth of the elements
 *               unpack, decay, update                                one pass over θ
 *
 * One thread. Both sides run alternately on the same arrays, and each ratio is of one round, so that changes of the
 * machine affect both. Every page is touched before the measurement.
 */
import { majority } from "@terse/codecs";
import { addressOf, applySigns, lionStep, lionVote } from "@terse/native-optimizers";
import { median } from "../measurement.ts";
import { clocked } from "../memory.ts";

/** n parameters (64 Mi: 768 MiB of floats), `rounds` measured rounds after two rounds of warm-up. */
export function localWork({ n = 64 * 2 ** 20, rounds = 15 }: { n?: number; rounds?: number } = {}) {
  const ranks = 8;
  const share = n / ranks; // elements that one rank counts
  const options = { lr: 1e-4, beta1: 0.9, beta2: 0.99, weightDecay: 0.1, zero: "plus" } as const;
  const change = { keep: 1 - options.lr * options.weightDecay, scale: -options.lr };

  const θ = alignedFloats(n, 1);
  const m = alignedFloats(n, 1e-3);
  const g = alignedFloats(n, 1e-3);
  const wire = alignedFloats(n / 32, 1); // as bytes: one bit a parameter
  const bits = new Uint8Array(wire.buffer, wire.byteOffset, n / 8);
  const votes = Array.from({ length: ranks }, (_, r) => bits.subarray((r * share) / 8, ((r + 1) * share) / 8));
  const elected = new Uint8Array(share / 8).fill(1);

  const plain = () => clocked(() => lionStep(θ, m, g, options));
  const cub = () => ({
    encode: clocked(() => lionVote(bits, m, g, options)),
    vote: clocked(() => majority(elected, votes, share, { tie: "plus" })),
    apply: clocked(() => applySigns(θ, bits, change)),
  });

  const rows: { lion: number; encode: number; vote: number; apply: number; local: number }[] = [];
  for (let round = -2; round < rounds; round++) {
    // The second side finds the end of the arrays in the cache, so the order alternates.
    const first = round % 2 === 0 ? plain() : undefined;
    const { encode, vote, apply } = cub();
    const lion = first ?? plain();
    if (round >= 0) rows.push({ lion, encode, vote, apply, local: encode + vote + apply });
  }

  const milliseconds = (of: (row: (typeof rows)[number]) => number) => 1000 * median(rows.map(of));
  return {
    /** Lion Cub's local work ÷ the plain Lion step: median of the rounds' ratios. */
    local_over_lion: median(rows.map(({ local, lion }) => local / lion)),
    /** Medians over the rounds. */
    details: {
      lion_step_ms: milliseconds(({ lion }) => lion),
      lion_cub_local_ms: milliseconds(({ local }) => local),
      momentum_sign_pack_ms: milliseconds(({ encode }) => encode),
      vote_of_8_ms: milliseconds(({ vote }) => vote),
      unpack_decay_apply_ms: milliseconds(({ apply }) => apply),
    },
  };
}

/** n floats of both signs about `size`, aligned to a cache line, with every page touched. */
function alignedFloats(n: number, size: number): Float32Array {
  const line = 64;
  const room = new Float32Array(n + line / 4);
  const past = Number(addressOf(room) % BigInt(line)); // bytes past the last line's start
  const floats = room.subarray(((line - past) % line) / 4).subarray(0, n);
  const pattern = Float32Array.from({ length: Math.min(n, 65_521) }, (_, i) => size * Math.sin(i * i + 1));
  for (let at = 0; at < n; at += pattern.length) floats.set(pattern.subarray(0, n - at), at);
  return floats;
}
