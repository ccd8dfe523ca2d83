/** The mean of vectors of f32, sent as f32, bf16, f16 or int8. */
import { bf16, type Codec, f16 } from "@terse/codecs";
import type { Cost, CostOf } from "../cost.ts";
import { onHost } from "../on-host.ts";
import type { DenseScheme, DenseType } from "./dense-scheme.ts";
import { carryMeans, meanCost, meansCost } from "./f32-mean.ts";
import { carryHalfMeans, halfMeanCost } from "./half-mean.ts";
import { carryInt8Means, int8Codec, int8MeansCost } from "./int8-mean.ts";

function scheme(
  type: DenseType,
  carry: DenseScheme["carry"],
  cost: CostOf,
  costTogether: DenseScheme["costTogether"] = (lengths, ranks, rank) => added(lengths.map((n) => cost(n, ranks, rank))),
): DenseScheme {
  return { type, carry, cost, costTogether };
}

/**
 * Codecs encode these means, on the host, or where `codec`, which alone touches the vectors, runs. A single rank sends
 * nothing: its vectors stay where they are.
 */
function encoded(carry: DenseScheme["carry"], codec?: Codec): DenseScheme["carry"] {
  return (vectors, context) =>
    context.size === 1 ? carry(vectors, context) : onHost(vectors, (here) => carry(here, context), codec);
}

const schemes: Record<DenseType, DenseScheme> = {
  f32: scheme("f32", carryMeans, meanCost, meansCost),
  bf16: scheme(
    "bf16",
    encoded((vectors, context) => carryHalfMeans("bf16", vectors, context), bf16 as Codec),
    halfMeanCost,
  ),
  f16: scheme(
    "f16",
    encoded((vectors, context) => carryHalfMeans("f16", vectors, context), f16 as Codec),
    halfMeanCost,
  ),
  int8: scheme(
    "int8",
    encoded(carryInt8Means, int8Codec),
    (n, ranks, rank) => int8MeansCost([n], ranks, rank),
    int8MeansCost,
  ),
};

/** The bytes and memory of all vectors, which share their messages. */
function added(costs: readonly Cost[]): Cost {
  return {
    bytes: costs.reduce((sum, { bytes }) => sum + bytes, 0),
    messages: Math.max(0, ...costs.map(({ messages }) => messages)),
    peakBytes: costs.reduce((sum, { peakBytes }) => sum + peakBytes, 0),
  };
}

/** Every type that means can be sent in; recipes use these names. */
export const denseTypes = Object.keys(schemes) as readonly DenseType[];

/** The scheme that sends means in this type. RangeError for an unknown type. */
export function dense(type: DenseType): DenseScheme {
  if (!Object.hasOwn(schemes, type))
    throw new RangeError(`dense: unknown type "${type}"; choose ${denseTypes.join(", ")}.`);
  return schemes[type];
}
