/**
 * The exact sum over the ranks of their quantised vectors. The ranks first agree on a unit, so that a level has the
 * same value on every rank and levels are added as whole numbers. Vectors are quantised once, on the way up, and not
 * again on the way down.
 *
 *   S = max over ranks of scale(x_r)                         for each scale group: a vector, a block or a segment
 *   u = the least fp32 with s u ≥ reach S                    s = 2^(p − 1) − 1;  reach is 2 for l1, 1 for the others
 *   q_r = Q(x_r / u)                                         −s … s: nearest (l1, int8) or drawn (linf, qsgd)
 *   into += scale · fp32(u Σ q_r), or x ← it                 the same bits on every rank, in any order of additions
 *
 * The error, besides the rounding of Σ to fp32, does not depend on how different the ranks' maxima are:
 *
 *   int8              at most P u/2 = P S/254
 *   l1                at most P u/2 if no |x| exceeds 2 S, where it clips
 *   random rounding   no bias, and a variance of at most P u²/4
 *
 * Levels of p bits go up; each chunk's owner adds them, and its whole numbers come down in the narrowest fields that
 * hold P s.
 *
 * With R scales, and w′ the width of the fields that come down, a rank
 *
 *   sends      about (p + w′)(P − 1)/P bits an element; p + w′ is 13 for 8 ranks and 5 bits, 24 for int8
 *   messages   those of the all-reduce of R scales, then 2 (P − 1)
 *   holds      4 (R + 1) bytes, and the memory of levels.ts
 *
 * Papers:
 *   Mishchenko, Wang, Kovalev, Richtárik 2022, "IntSGD", https://arxiv.org/abs/2102.08374, sums whole numbers with a
 *     factor that every rank knows
 *   Xin, Canini, Richtárik, Horváth 2023, "Global-QSGD", https://arxiv.org/abs/2305.18627, shares a norm
 *   Sapio et al. 2021, "SwitchML", https://arxiv.org/abs/1903.06701, agrees on a maximum before each block
 */
import { type Codec, type Floats, scaleGroupsWithin } from "@terse/codecs";
import { allReduceBytes, type Group } from "@terse/collectives";
import { OwnerPhases, type OwnerScheme } from "../by-owners/by-owners.ts";
import { checkLength, checkOptions, type EncodeOptions } from "../by-owners/owned-chunks.ts";
import { type Cost, costOf, costTogether } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { runStages } from "../run-stages.ts";
import { AgreedUnits } from "./agreed-units.ts";
import type { CodecMessage, CodedVector } from "./codec-message.ts";
import { layoutOf } from "./fields-layout.ts";
import { type Kind, nothing } from "./kind.ts";
import { addLevels, levelSumsCost } from "./level-sums.ts";

export interface SumOfFieldsOptions extends EncodeOptions {
  /** Σ x, times `scale`, is added to these n floats; it replaces x unless they are given. */
  readonly into?: Floats | undefined;
  /** l1, linf with evenly spaced levels, qsgd or int8, with its number of bits and its scale groups. */
  readonly codec: Codec;
  /** The factor of the sum when it is added: 1 unless given; 1/P gives the mean. */
  readonly scale?: number | undefined;
}

export interface FieldsRequest {
  readonly x: Floats;
  readonly options: SumOfFieldsOptions;
}

/**
 * into += scale · Σ x, or x ← it. RangeError if no field can hold the sum of this many ranks. All ranks throw a
 * StepRefusedError, before any level is sent, if one rank has a NaN or if the sum may exceed fp32.
 */
export const sumOfFields: Kind<Floats, SumOfFieldsOptions, FieldsRequest, void, CodecMessage<"sumOfFields">> = {
  name: "sumOfFields",
  memory: "replaced",
  ofCodec: ["into"],
  ask(x, options, { group }) {
    const request = { x, options };
    checkFields("sumOfFields", group, request);
    return request;
  },
  carry: carryFields,
  result: nothing,
  cost: (messages, ranks, rank) => [sumsOfFieldsCost(messages, ranks, rank)],
};

/** Several vectors: one all-reduce for all scales, and one message for all fields. */
export async function carryFields(requests: readonly FieldsRequest[], context: ExchangeContext): Promise<void> {
  using agreed = new AgreedUnits(
    requests.map(({ x, options: { codec } }) => ({ x, codec })),
    context,
  );
  const schemes = requests.map((request, i) => fieldsScheme(context.up.group, request, agreed.units[i]!));
  using phases = new OwnerPhases(schemes, context);
  await runStages([agreed.stage, ...phases.stages], context);
  phases.handOut();
}

/** The cost for vectors of one round. */
export function sumsOfFieldsCost(vectors: readonly CodedVector[], ranks: number, rank: number): Cost {
  const layouts = vectors.map(({ n, codec }) => layoutOf(codec, n, ranks));
  const scales = layouts.reduce((sum, { groups }) => sum + groups, 1); // the last one carries refusals
  const fields = costTogether(layouts.map((layout) => levelSumsCost(layout, rank)));
  return costOf([allReduceBytes(scales, 4, ranks, rank), fields], fields.peakBytes + 4 * scales);
}

/** RangeError for wrong options, before anything is sent. */
export function checkFields(where: string, group: Group, { x, options }: FieldsRequest): void {
  checkOptions(where, options.codec, x.length, options);
  if (options.into) checkLength(where, "into", options.into, x.length, "as x has");
  layoutOf(options.codec, x.length, group.size);
}

/** The phases of one vector, with the units that the ranks have agreed on. */
export function fieldsScheme(group: Group, { x, options }: FieldsRequest, units: Float32Array): OwnerScheme {
  const { into, codec, scale = 1 } = options;
  const layout = layoutOf(codec, x.length, group.size);
  const { chunks, down } = layout;
  return {
    ...addLevels(group, x, options, layout, units),
    handOut: (results) =>
      chunks.read(results, x, into, (r) => {
        const [first, count] = scaleGroupsWithin(codec.parameters, chunks.starts[r]!, chunks.starts[r + 1]!);
        return [down[r]!, { scale, units: units.subarray(first, first + count) }];
      }),
  };
}
