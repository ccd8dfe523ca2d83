/** The mean of vectors of f32, sent as f32, bf16, f16 or int8. */
import { bf16, type Codec, type Floats, f16 } from "@terse/codecs";
import type { BufferLike } from "@terse/collectives";
import { costOf, costTogether } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { onHost } from "../on-host.ts";
import { checkNotes } from "../refusal.ts";
import type { DenseScheme, DenseType } from "./dense-scheme.ts";
import { carryMeans, meansCost } from "./f32-mean.ts";
import { carryHalfMeans, halfMeanCost } from "./half-mean.ts";
import { carryInt8Means, int8Codec, int8MeansCost } from "./int8-mean.ts";

type Carry = (vectors: readonly Floats[], context: ExchangeContext) => Promise<void>;

/** Codecs encode these means on the host, or where `codec`, which alone touches the vectors, runs. */
function encoded(type: DenseType, codec: Codec, carry: Carry, cost: DenseScheme["cost"]): DenseScheme {
  return {
    type,
    async carry(vectors, context) {
      if (context.size === 1) return checkNotes([context.note]); // nothing is sent: the vectors stay as they are
      await onHost(vectors, (here) => carry(here.map(floatsOf), context), codec);
    },
    cost: (lengths, ranks, rank) => (ranks === 1 ? costOf([]) : cost(lengths, ranks, rank)),
  };
}

const half = (type: "bf16" | "f16", codec: Codec): DenseScheme =>
  encoded(
    type,
    codec,
    (vectors, context) => carryHalfMeans(codec, vectors, context),
    (lengths, ranks, rank) => costTogether(lengths.map((n) => halfMeanCost(n, ranks, rank))),
  );

const schemes: Record<DenseType, DenseScheme> = {
  f32: { type: "f32", carry: carryMeans, cost: meansCost },
  bf16: half("bf16", bf16 as Codec),
  f16: half("f16", f16 as Codec),
  int8: encoded("int8", int8Codec, carryInt8Means, int8MeansCost),
};

/** The vector as a codec takes it. TypeError if it is not f32. */
function floatsOf(x: BufferLike): Floats {
  if (x instanceof Float32Array || ("pointer" in x && x.dtype === "f32")) return x;
  throw new TypeError(
    "mean: a mean that is sent in 8 or 16 bits (exchange.dense in a recipe) takes vectors of f32; send it in f32",
  );
}

/** Every type that means can be sent in; recipes use these names. */
export const denseTypes = Object.keys(schemes) as readonly DenseType[];

/** The scheme that sends means in this type. RangeError for an unknown type. */
export function dense(type: DenseType): DenseScheme {
  if (!Object.hasOwn(schemes, type))
    throw new RangeError(`dense: unknown type "${type}"; choose ${denseTypes.join(", ")}.`);
  return schemes[type];
}
