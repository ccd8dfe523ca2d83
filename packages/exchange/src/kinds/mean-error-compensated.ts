/**
 * The mean of a vector over the ranks, compressed on the way up and on the way down, with error feedback: the rest that
 * a wire cannot carry is added at the next step. 1-bit Adam, Tang et al. 2021, Algorithm 1,
 * https://arxiv.org/abs/2102.02888; 1-bit LAMB, Li et al. 2021, Algorithm 1, lines 7 to 11,
 * https://arxiv.org/abs/2104.06069; Seide et al. 2014, "1-Bit Stochastic Gradient Descent"
 *
 *   e ← β e + x,  a = C(e),  e ← e − a            every rank, for the whole vector     e: its own error, n floats
 *   f ← β f + (1/P) Σ a,  b = C(f),  f ← f − b    each chunk's owner                   f: the chunk's error
 *   into += b, or x ← b                           the same on every rank
 *
 * β is `decay`, 1 unless given. For any codec C, with E = mean(e) + f and at any time t:
 *
 *   E_t = β E_{t−1} + mean(x) − b                 and so, for β = 1, Σ_t b + E = Σ_t mean(x)
 *
 * With the default C, scaled-sign, a rank writes one scale for its whole vector and an owner one for its chunk:
 * √mean x², over real elements only, without padding. A single rank has no f: b = a.
 *
 * With scaled-sign, and chunks of c ≈ n/P elements, a rank
 *
 *   sends   2 (P − 1) messages; Σ_{r ≠ rank} (4 + ⌈c_r/8⌉) bytes up and (P − 1)(4 + ⌈c/8⌉) down
 *   holds   three wires of the whole vector: 3 n/8 bytes
 */
import { type Codec, type Floats, scaledSign } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { byOwnersCost, type OwnerScheme } from "../by-owners/by-owners.ts";
import {
  checkDecay,
  checkLength,
  checkOptions,
  type FeedbackOptions,
  ownedChunks,
  sliceOf,
} from "../by-owners/owned-chunks.ts";
import type { Cost } from "../cost.ts";
import { scratchOf } from "../scratch.ts";
import { type Kind, nothing } from "./kind.ts";
import { viaOwners } from "./via-owners.ts";

/** Options of `meanErrorCompensated`, with the errors that it keeps between steps. */
export interface ErrorCompensation extends FeedbackOptions {
  /** The mean is added to these n floats; it replaces x unless they are given. */
  readonly into?: Floats | undefined;
  /** n floats, 0 at first: the rest that this rank has not sent yet. */
  readonly workerError: Floats;
  /** `ownedElements` floats, 0 at first: the rest that this rank, as the owner of a chunk, has not sent yet. */
  readonly serverError: Floats;
  /** Any codec, the same on every rank; its parameters define the scale groups. scaled-sign unless given. */
  readonly codec?: Codec | undefined;
}

const oneBit = scaledSign() as Codec;
const where = "meanErrorCompensated";

/**
 * The error-compensated mean of vectors whose errors the caller keeps: it writes each wire itself, and knows what the
 * wire leaves of the error.
 */
export interface MeanOfWires {
  /** Elements of each vector. */
  readonly n: number;
  /**
   * Writes the wire of this rank's whole vector. A NotFiniteError in here or in `reduce` refuses the step on all ranks.
   */
  readonly encode: (wire: Uint8Array) => void;
  /**
   * Writes the wire of the mean of the chunk that this rank owns, from all ranks' wires of it. Not called where the
   * chunk is empty, and not for a single rank. A BadWireError in here ends the group.
   */
  readonly reduce: (wires: readonly Uint8Array[], result: Uint8Array) => void;
  /** A codec whose scales may reach beyond a chunk (`layout`), the same on every rank. scaled-sign unless given. */
  readonly codec?: Codec | undefined;
}

/** The wire of the elements [begin, end) of a mean, as the codec of that part writes it. */
export interface ChunkWire {
  readonly begin: number;
  readonly end: number;
  readonly wire: Uint8Array;
}

export interface CompensatedMessage {
  readonly kind: "meanErrorCompensated";
  readonly n: number;
  readonly codec?: Codec | undefined;
}

/** into += the error-compensated mean over ranks of x, or x ← it. After a NaN in x the errors may have changed. */
export const meanErrorCompensated: Kind<Floats, ErrorCompensation, OwnerScheme, void, CompensatedMessage> = {
  ...viaOwners,
  memory: "replaced",
  ofCodec: ["into", "workerError"], // the owner adds to its error on the host
  name: "meanErrorCompensated",
  ask: (x, options, { group }) => schemeOf(group, x, options),
  result: nothing,
  cost: (messages, ranks, rank) => messages.map(({ n, codec }) => costOfOne(n, ranks, rank, codec)),
};

type WiresPart = OwnerScheme & { readonly found: ChunkWire[] };

/** The message of `meanErrorCompensated`, for vectors that the ranks have encoded themselves. */
export const meanOfWires: Kind<undefined, MeanOfWires, WiresPart, readonly ChunkWire[], never> = {
  ...viaOwners,
  memory: "own",
  name: "meanOfWires",
  ask(_, options, { group }) {
    const found: ChunkWire[] = [];
    return { ...schemeOfWires(group, options, found), found };
  },
  result: ({ found }) => found,
  cost: () => [], // its messages are those of meanErrorCompensated
};

function schemeOf(group: Group, x: Floats, options: ErrorCompensation): OwnerScheme {
  const { into, workerError, serverError, decay, codec = oneBit } = options;
  const { rank, size } = group;
  const n = x.length;
  const chunks = ownedChunks(codec, n, size);
  const mine = size === 1 ? 0 : chunks.lengthOf(rank);
  if (into) checkLength(where, "into", into, n, "as x has");
  checkLength(where, "workerError", workerError, n, "as x has");
  checkOptions(where, codec, n, options);
  checkDecay(where, decay);
  const why = `the elements that rank ${rank} of ${size} owns (see ownedElements)`;
  checkLength(where, "serverError", serverError, mine, why);
  return {
    up: chunks.sizes,
    down: chunks.sizes,
    encode: (outgoing) =>
      chunks.write(outgoing, scratchOf(group), (of, wire, begin, end) => {
        const call: object = chunks.call(options, 2 * rank, begin, end);
        const [part, error] = [sliceOf(x, begin, end), sliceOf(workerError, begin, end)];
        of.encodeWithFeedback(wire, part, error, { ...call, decay });
      }),
    reduce(incoming, result) {
      if (mine === 0) return result.set(incoming[0]!); // one rank, or no element
      const call: object = chunks.call(options, 2 * rank + 1, chunks.starts[rank]!, chunks.starts[rank + 1]!);
      chunks.codecs[rank]!.encodeSumWithFeedback(result, incoming, serverError, { ...call, scale: 1 / size, decay });
    },
    handOut: (results) => chunks.handOut(results, x, into, options),
  };
}

/** As `schemeOf`, but the mean's wires are copied to `found`, memory of their own, instead of being added to `into`. */
function schemeOfWires(group: Group, options: MeanOfWires, found: ChunkWire[]): OwnerScheme {
  const { n, encode, reduce, codec = oneBit } = options;
  const { rank, size } = group;
  const chunks = ownedChunks(codec, n, size);
  if (!chunks.encodedWhole)
    throw new TypeError(`meanOfWires: ${codec.name} writes each chunk by itself; take meanErrorCompensated.`);
  return {
    up: chunks.sizes,
    down: chunks.sizes,
    encode: (outgoing) => chunks.write(outgoing, scratchOf(group), (_, wire) => encode(wire)),
    reduce(incoming, result) {
      if (size === 1) result.set(incoming[0]!);
      else if (chunks.lengthOf(rank) > 0) reduce(incoming, result);
    },
    handOut(results) {
      for (const [r, wire] of results.entries())
        if (wire.length > 0) found.push({ begin: chunks.starts[r]!, end: chunks.starts[r + 1]!, wire: wire.slice() });
    },
  };
}

/** The length of this rank's server error: that of the chunk that it owns, 0 for a single rank. */
export function ownedElements(n: number, ranks: number, rank: number, codec: Codec = oneBit): number {
  const [begin, end] = ownedRange(n, ranks, rank, codec);
  return end - begin;
}

/**
 * The elements [begin, end) of a vector whose server error this rank keeps: the chunk that it owns, none for a single
 * rank.
 */
export function ownedRange(
  n: number,
  ranks: number,
  rank: number,
  codec: Codec = oneBit,
): [begin: number, end: number] {
  if (ranks === 1) return [0, 0];
  const { starts } = ownedChunks(codec, n, ranks);
  return [starts[rank]!, starts[rank + 1]!];
}

function costOfOne(n: number, ranks: number, rank: number, codec: Codec = oneBit): Cost {
  const chunks = ownedChunks(codec, n, ranks);
  return byOwnersCost(chunks.sizes, chunks.sizes, rank, { encoding: chunks.wholeBytes, reducing: 0 });
}
