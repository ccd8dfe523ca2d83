import type { Parameters } from "@terse/native-codecs";
import type { Codec, Definition, OfGradients } from "./codec.ts";
import * as bf16 from "./codecs/bf16/bf16.ts";
import * as binMeans from "./codecs/bin-means/bin-means.ts";
import * as count from "./codecs/count/count.ts";
import * as dctTopK from "./codecs/dct-top-k/dct-top-k.ts";
import * as f16 from "./codecs/f16/f16.ts";
import * as int8 from "./codecs/int8/int8.ts";
import * as l1 from "./codecs/l1/l1.ts";
import * as linf from "./codecs/linf/linf.ts";
import * as qsgd from "./codecs/qsgd/qsgd.ts";
import * as scaledSign from "./codecs/scaled-sign/scaled-sign.ts";
import * as sign from "./codecs/sign/sign.ts";
import * as ternary from "./codecs/ternary/ternary.ts";
import * as terngrad from "./codecs/terngrad/terngrad.ts";
import * as topK from "./codecs/top-k/top-k.ts";
import { checkNames } from "./shared/parameters.ts";

interface Entry {
  readonly definition: Definition;
  /** Checks the parameters. */
  create(parameters: Parameters): Codec;
}

/** Parameters of any codec, for a factory that checks them. */
type Any = never;

/** The registry. */
const entries: readonly Entry[] = [
  { definition: bf16.definition, create: (parameters) => plain(bf16.bf16, parameters) },
  { definition: binMeans.definition, create: binMeans.binMeans },
  {
    definition: count.definition,
    create: (parameters) => count.count({ ranks: 1, ...parameters } as count.CountParameters),
  },
  { definition: dctTopK.definition, create: (parameters) => dctTopK.dctTopK(parameters as Any) },
  { definition: f16.definition, create: (parameters) => plain(f16.f16, parameters) },
  { definition: int8.definition, create: int8.int8 },
  { definition: l1.definition, create: (parameters) => l1.l1(parameters as Any) },
  { definition: linf.definition, create: (parameters) => linf.linf(parameters as Any) },
  { definition: qsgd.definition, create: (parameters) => qsgd.qsgd(parameters as Any) },
  { definition: scaledSign.definition, create: scaledSign.scaledSign },
  { definition: sign.definition, create: (parameters) => plain(sign.sign, parameters) },
  { definition: ternary.definition, create: (parameters) => plain(ternary.ternary, parameters) },
  { definition: terngrad.definition, create: terngrad.terngrad },
  { definition: topK.definition, create: (parameters) => topK.topK(parameters as Any) }, // it refuses a missing k
];

const byName = <T>(of: (entry: Entry) => T): Readonly<Record<string, T>> =>
  Object.fromEntries(entries.map((entry) => [entry.definition.name, of(entry)]));

/** Every codec by its name in recipes, frames and the C library. */
export const codecs: Readonly<Record<string, (parameters: Parameters) => Codec>> = /* @__PURE__ */ byName(
  ({ create }) => create,
);

/** The codecs for gradients, and the parameters that they ask for. */
export const codecsOfGradients: Readonly<Record<string, OfGradients>> = /* @__PURE__ */ Object.fromEntries(
  /* @__PURE__ */ entries.flatMap(({ definition: { name, gradients } }) =>
    gradients ? [[name, gradients] as const] : [],
  ),
);

/** A codec by name. RangeError for an unknown name, and for a parameter that the codec does not take. */
export function codecNamed(name: string, parameters: Parameters = {}): Codec {
  const make = Object.hasOwn(codecs, name) ? codecs[name] : undefined;
  if (make) return make(parameters);
  throw new RangeError(`there is no codec "${name}"; there are ${Object.keys(codecs).join(", ")}.`);
}

/** A codec without parameters. */
function plain(codec: Codec, parameters: Parameters): Codec {
  checkNames(codec.name, parameters, []);
  return codec;
}
