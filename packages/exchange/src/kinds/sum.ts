/**
 * The sum of a vector over the ranks, written by a codec on the way up and again on the way down. It is approximate,
 * with a bounded error, and the same bits on every rank.
 *
 *   a = C(x)             every rank, for the whole vector
 *   S = Σ a              each chunk's owner, in fp32, in rank order
 *   into += scale · C(S)
 *
 * The error of int8 is at most half a step, max |x| / 254, and it enlarges no maximum. So, with the maxima of a scale
 * group, and besides the fp32 roundings of P additions,
 *
 *   |C(S) − Σ x| ≤ Σ_r max |x_r| / 254 + max |S| / 254 ≤ Σ_r max |x_r| / 127
 *
 * The error is not kept for the next step: see mean-error-compensated.ts for that. With random rounding (linf, qsgd,
 * terngrad) the sum is unbiased. sum-of-fields.ts and levels.ts add levels exactly, as whole numbers.
 *
 * With int8 without blocks, and chunks of c ≈ n/P elements, a rank
 *
 *   sends   2 (P − 1) messages; Σ_{r ≠ rank} (4 + c_r) bytes up and (P − 1)(4 + c) down
 *   holds   three wires of the whole vector, 3 n bytes, and 4 c bytes for the sum
 *
 * Paper, for the idea: Dettmers 2015, "8-Bit Approximations for Parallelism in Deep Learning",
 * https://arxiv.org/abs/1511.04561
 */
import type { Codec, Floats } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { byOwnersCost, type OwnerScheme } from "../by-owners/by-owners.ts";
import { checkLength, checkOptions, type EncodeOptions, ownedChunks, sliceOf } from "../by-owners/owned-chunks.ts";
import type { Cost } from "../cost.ts";
import { scratchOf } from "../scratch.ts";
import type { CodecMessage } from "./codec-message.ts";
import { type Kind, nothing } from "./kind.ts";
import { viaOwners } from "./via-owners.ts";

export interface SumOptions extends EncodeOptions {
  /** The sum is added to these n floats. */
  readonly into: Floats;
  readonly codec: Codec;
  /** The factor of the sum when it is added: 1 unless given; 1/P gives the mean. */
  readonly scale?: number | undefined;
}

/** into += scale · Σ over ranks of x, twice through the codec. After a NaN in x all ranks throw a StepRefusedError. */
export const sum: Kind<Floats, SumOptions, OwnerScheme, void, CodecMessage<"sum">> = {
  ...viaOwners,
  name: "sum",
  ofCodec: ["into"],
  ask: (x, options, { group }) => schemeOf(group, x, options),
  result: nothing,
  cost: (messages, ranks, rank) => messages.map(({ n, codec }) => costOfOne(n, ranks, rank, codec)),
};

function schemeOf(group: Group, x: Floats, options: SumOptions): OwnerScheme {
  const { rank, size } = group;
  const { into, codec, scale = 1 } = options;
  const chunks = ownedChunks(codec, x.length, size);
  checkOptions("sum", codec, x.length, options);
  checkLength("sum", "into", into, x.length, "as x has");
  const mine = size === 1 ? 0 : chunks.lengthOf(rank);
  return {
    up: chunks.sizes,
    down: chunks.sizes,
    encode: (outgoing) =>
      chunks.write(outgoing, scratchOf(group), (of, wire, begin, end) =>
        of.encode(wire, sliceOf(x, begin, end), chunks.call(options, 2 * rank, begin, end)),
      ),
    reduce(incoming, result) {
      if (mine === 0) return result.set(incoming[0]!); // one rank, or no element
      using loan = scratchOf(group).loan(4 * mine);
      const S = loan.floats.fill(0);
      chunks.add(rank, incoming, S, options, 1);
      const [begin, end] = [chunks.starts[rank]!, chunks.starts[rank + 1]!];
      chunks.codecs[rank]!.encode(result, S, chunks.call(options, 2 * rank + 1, begin, end));
    },
    handOut: (results) => chunks.handOut(results, x, into, options, scale),
  };
}

function costOfOne(n: number, ranks: number, rank: number, codec: Codec): Cost {
  const chunks = ownedChunks(codec, n, ranks);
  const reducing = ranks === 1 ? 0 : 4 * chunks.lengthOf(rank);
  return byOwnersCost(chunks.sizes, chunks.sizes, rank, { encoding: chunks.wholeBytes, reducing });
}
