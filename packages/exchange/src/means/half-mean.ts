/**
 * The mean of a vector of f32, sent in 16 bits, bf16 or f16. It is rounded once on the way up and once on the way down,
 * and added in f32 in between. A ring in 16 bits would round at each of its P − 1 steps.
 *
 *   h_r ← round(x_r)              every rank, to nearest even
 *   s ← Σ_r h_r · (1/P)           each chunk's owner, in f32, in the order of the ranks
 *   x ← round(s)                  the same 16 bits on every rank, the owner included
 *
 * Sent by a rank that owns c ≈ n / P of the n elements: 2 (P − 1) messages, 2 ((n − c) + (P − 1) c) bytes, half of f32.
 * Chunks begin at multiples of 8 elements. Held: the wires of by-owners.ts, 2 bytes an element, and 4 bytes for each
 * element of a chunk.
 */
import { bf16, type Codec, type Floats } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { byOwners, byOwnersCost, type OwnerScheme } from "../by-owners/by-owners.ts";
import { ownedChunks, sliceOf } from "../by-owners/owned-chunks.ts";
import type { Cost } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { scratchOf } from "../scratch.ts";

/** The means of vectors over more than one rank, in the codec bf16 or f16. */
export function carryHalfMeans(codec: Codec, vectors: readonly Floats[], context: ExchangeContext): Promise<void> {
  const { group } = context.up;
  const schemes = vectors.map((x) => halfMeanScheme(group, x, codec));
  return byOwners(schemes, context);
}

function halfMeanScheme(group: Group, x: Floats, codec: Codec): OwnerScheme {
  const { rank, size } = group;
  const chunks = ownedChunks(codec, x.length, size);
  const mine = chunks.lengthOf(rank);
  return {
    up: chunks.sizes,
    down: chunks.sizes,
    encode: (outgoing) =>
      chunks.write(outgoing, scratchOf(group), (of, wire, begin, end) => of.encode(wire, sliceOf(x, begin, end))),
    reduce(incoming, result) {
      using loan = scratchOf(group).loan(4 * mine);
      const s = loan.floats.fill(0);
      chunks.add(rank, incoming, s, {}, 1 / size);
      if (mine > 0) codec.encode(result, s);
    },
    handOut: (results) => chunks.handOut(results, x, undefined, {}),
  };
}

export function halfMeanCost(n: number, ranks: number, rank: number): Cost {
  const chunks = ownedChunks(bf16 as Codec, n, ranks);
  const memory = { encoding: chunks.wholeBytes, reducing: 4 * chunks.lengthOf(rank) };
  return byOwnersCost(chunks.sizes, chunks.sizes, rank, memory);
}
