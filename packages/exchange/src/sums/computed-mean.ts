/**
 * A function of the mean of a vector over the ranks, computed once, by the vector's owner, who sends the result to all. The ranks share the
 * work of several vectors, and have the same bits even where the function's last bits depend on the processor, as QR and matrix products do.
 *
 *   x̄ ← (1/P) Σ_r x_r        the owner, in rank order, added in fp64 and rounded once
 *   into ← f(x̄)              the owner; the other ranks take its bytes
 *
 * Sent by a rank, for n elements up and k down: the owner 4 k bytes to each other rank, the others 4 n bytes to the owner. With owners
 * of equal shares this is (P − 1)/P · 4 (n + k) bytes a rank, as an all-reduce sends. Messages: 2 (P − 1) for all vectors of a round.
 * Held: 4 n bytes, at the owner of more ranks than one 4 (P + 1) n bytes; and 4 k bytes.
 */
import type { Floats } from "@terse/codecs";
import { copy, type Group } from "@terse/collectives";
import type { Cost } from "../cost.ts";
import { type CallOptions, carryOver } from "../exchange-context.ts";
import { retaining } from "../retaining.ts";
import { scratchOf } from "../scratch.ts";
import { byOwners, byOwnersCost, type OwnerScheme } from "./by-owners.ts";
import { averageFloats, checkFinite, floatsAt, writeFloats } from "./f32-wires.ts";

export interface ComputedMeanOptions {
  /** The rank that computes, the same on every rank. */
  readonly owner: number;
  /**
   * f: reads the mean of n elements and writes all of the result. It is called on the owner alone, once, and may change the mean. If it
   * throws, the group is aborted; if its result is not finite, all ranks throw a StepRefusedError.
   */
  readonly compute: (mean: Float32Array, result: Float32Array) => void;
  /** The result, of any length that is the same on every rank; x unless given. */
  readonly into?: Floats | undefined;
}

/**
 * into ← f(mean over ranks of x), the same bits on every rank. RangeError if there is no such owner. After a NaN in x all ranks throw a
 * StepRefusedError.
 */
export function computedMean(
  group: Group,
  vector: Floats,
  given: ComputedMeanOptions,
  call: CallOptions = {},
): Promise<void> {
  return retaining(vector, given, async (x, options) => {
    const scheme = computedMeanScheme(group, x, options);
    await carryOver(group, call, (context) => byOwners([scheme], context));
  });
}

export function computedMeanScheme(
  group: Group,
  x: Floats,
  { owner, compute, into = x }: ComputedMeanOptions,
): OwnerScheme {
  const { size } = group;
  if (!Number.isInteger(owner) || owner < 0 || owner >= size)
    throw new RangeError(
      `computedMean: owner is ${owner}; choose one of the ranks 0 to ${size - 1}, the same on every rank.`,
    );
  return {
    up: ownedBy(owner, 4 * x.length, size),
    down: ownedBy(owner, 4 * into.length, size),
    encode(outgoing) {
      writeFloats("computedMean", outgoing[owner]!, x);
    },
    reduce(incoming, result) {
      if (group.rank !== owner) return;
      using loan = size > 1 ? scratchOf(group).loan(4 * x.length) : undefined;
      const mean = loan?.floats ?? floatsAt(incoming[owner]!); // of one rank, its own wire
      if (loan) averageFloats(mean, incoming);
      const computed = floatsAt(result);
      try {
        compute(mean, computed);
      } catch (error) {
        group.abort(`computedMean: rank ${owner} cannot compute its result: ${String(error)}`); // the other ranks wait for it
        throw new Error("computedMean: its function failed on this rank", { cause: error });
      }
      checkFinite("computedMean", computed);
    },
    handOut: (results) => copy(into, floatsAt(results[owner]!)),
  };
}

/** The cost of n elements up and k down. */
export function computedMeanCost(n: number, ranks: number, rank: number, owner: number, k: number = n): Cost {
  const reducing = rank === owner && ranks > 1 ? 4 * n : 0;
  return byOwnersCost(ownedBy(owner, 4 * n, ranks), ownedBy(owner, 4 * k, ranks), rank, { encoding: 0, reducing });
}

const ownedBy = (owner: number, bytes: number, ranks: number): number[] =>
  Array.from({ length: ranks }, (_, r) => (r === owner ? bytes : 0));
