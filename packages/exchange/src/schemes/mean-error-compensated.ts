/**
 * The mean of a vector over the ranks, compressed on the way up and on the way down, where what a wire could not say waits for the
 * next time. 1-bit Adam, Tang et al. 2021, Algorithm 1, https://arxiv.org/abs/2102.02888; 1-bit LAMB, Li et al. 2021, Algorithm 1,
 * lines 7 to 10, https://arxiv.org/abs/2104.06069; Seide et al. 2014, "1-Bit Stochastic Gradient Descent"
 *
 *   e ← e + x,  a = C(e),  e ← e − a              every rank, of the whole vector      e: its own error, n floats
 *   f ← f + (1/P) Σ a,  b = C(f),  f ← f − b      each chunk's owner                   f: the chunk's error
 *   into += b                                     the same on every rank
 *
 * Always, and for any codec C:  Σ_t b + mean(e) + f = Σ_t mean(x). With the default C, scaled-sign, a rank writes one scale for its
 * whole vector and an owner one for its chunk, √mean x², over real elements only: nothing is padded. One rank has no f: b = a.
 *
 * Sent by a rank, scaled-sign, chunks of c ≈ n/P elements: 2 (P − 1) messages, Σ_{r ≠ rank} (4 + ⌈c_r/8⌉) + (P − 1)(4 + ⌈c/8⌉) bytes.
 * Held: three wires of the whole, so 3 n/8 bytes, and 4 c bytes for the sum.
 */
import { type Codec, type Floats, scaledSign } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { checkLength, checkOptions, chunksOf, type EncodeOptions, sliceOf } from "../chunks.ts";
import type { Cost } from "../cost.ts";
import { scratchOf } from "../scratch.ts";
import { byOwners, byOwnersCost, type Delivery } from "./by-owners.ts";

export interface ErrorCompensation extends EncodeOptions {
  /** The mean is added to these n floats. */
  readonly into: Floats;
  /** n floats, 0 at first: what this rank could not say yet. */
  readonly workerError: Floats;
  /** 0 at first, as many as `ownedElements` says: what this rank, as an owner, could not say yet. */
  readonly serverError: Floats;
  /** Any codec; the same on every rank. One scale for the whole, a block or a segment as the codec says. */
  readonly codec?: Codec | undefined;
}

const oneBit = scaledSign() as Codec;

/**
 * into += the error-compensated mean over ranks of x, the same bits on every rank. Lengths that do not fit: RangeError. `note`: this
 * rank's refusal, 0 if it has none; a NaN in x is one. After a refused exchange the errors are no longer what they were.
 */
export async function meanErrorCompensated(
  group: Group,
  x: Floats,
  options: ErrorCompensation,
  note = 0,
  gather: Group = group,
): Promise<void> {
  await byOwners(group, [errorCompensated(group, x, options)], note, gather);
}

/** One vector's part in a joint message. */
export function errorCompensated(group: Group, x: Floats, options: ErrorCompensation): Delivery {
  const { rank, size } = group;
  const { into, workerError, serverError, codec = oneBit } = options;
  const n = x.length;
  const chunks = chunksOf(codec, n, size);
  const where = "meanErrorCompensated";
  checkOptions(where, codec, n, options);
  checkLength(where, "into", into, n, "as x has");
  checkLength(where, "workerError", workerError, n, "as x has");
  const mine = size === 1 ? 0 : chunks.lengthOf(rank);
  checkLength(where, "serverError", serverError, mine, `what rank ${rank} of ${size} owns: ask ownedElements`);
  return {
    up: chunks.sizes,
    down: chunks.sizes,
    write: (outgoing) =>
      chunks.write(outgoing, scratchOf(group), (of, wire, begin, end) =>
        of.encodeWithFeedback(
          wire,
          sliceOf(x, begin, end),
          sliceOf(workerError, begin, end),
          chunks.call(options, 2 * rank, begin, end),
        ),
      ),
    reduce(incoming, result) {
      if (mine === 0) return result.set(incoming[0]!); // one rank, or nothing
      using mean = scratchOf(group).loan(4 * mine);
      const v = mean.floats.fill(0);
      chunks.add(rank, incoming, v, options, 1 / size);
      const [begin, end] = [chunks.starts[rank]!, chunks.starts[rank + 1]!];
      chunks.codecs[rank]!.encodeWithFeedback(result, v, serverError, chunks.call(options, 2 * rank + 1, begin, end));
    },
    finish: (results) => chunks.addAll(results, into, options),
  };
}

/** Floats of the server error of this rank: of the chunk that it owns, none where it is alone. */
export function ownedElements(n: number, ranks: number, rank: number, codec: Codec = oneBit): number {
  return ranks === 1 ? 0 : chunksOf(codec, n, ranks).lengthOf(rank);
}

export function meanErrorCompensatedCost(n: number, ranks: number, rank: number, codec: Codec = oneBit): Cost {
  const chunks = chunksOf(codec, n, ranks);
  const reducing = 4 * ownedElements(n, ranks, rank, codec);
  return byOwnersCost(chunks.sizes, chunks.sizes, rank, { writing: chunks.wholeBytes, reducing });
}
