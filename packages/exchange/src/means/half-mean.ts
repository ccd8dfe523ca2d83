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
import { bf16, type Codec, f16 } from "@terse/codecs";
import type { BufferLike, Group } from "@terse/collectives";
import { byOwners, byOwnersCost, type OwnerScheme } from "../by-owners/by-owners.ts";
import { ownedChunks, sliceOf } from "../by-owners/owned-chunks.ts";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { checkNotes } from "../refusal.ts";
import { scratchOf } from "../scratch.ts";
import { floatsOf } from "./floats-of.ts";

const codecs = { bf16, f16 };

/** A single rank sends nothing and keeps its vectors as they are. */
export async function carryHalfMeans(
  type: "bf16" | "f16",
  vectors: readonly BufferLike[],
  context: ExchangeContext,
): Promise<void> {
  if (context.size === 1) return checkNotes([context.note]);
  const { group } = context.up;
  await byOwners(
    vectors.map((x) => halfMeanScheme(group, x, codecs[type])),
    context,
  );
}

function halfMeanScheme(group: Group, vector: BufferLike, codec: Codec<Record<never, never>>): OwnerScheme {
  const x = floatsOf(vector);
  const { rank, size } = group;
  const chunks = ownedChunks(codec as Codec, x.length, size);
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
  if (ranks === 1) return costOf([]);
  const chunks = ownedChunks(bf16 as Codec, n, ranks);
  const memory = { encoding: chunks.wholeBytes, reducing: 4 * chunks.lengthOf(rank) };
  return byOwnersCost(chunks.sizes, chunks.sizes, rank, memory);
}
