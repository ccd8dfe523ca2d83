import type { Parameters } from "@terse/native-codecs";
import type { Codec } from "./codec.ts";
import { bf16 } from "./codecs/bf16/bf16.ts";
import { type CountParameters, count } from "./codecs/count/count.ts";
import { dctTopK } from "./codecs/dct-top-k/dct-top-k.ts";
import { f16 } from "./codecs/f16/f16.ts";
import { int8 } from "./codecs/int8/int8.ts";
import { type L1Parameters, l1 } from "./codecs/l1/l1.ts";
import { type LinfParameters, linf } from "./codecs/linf/linf.ts";
import { type QsgdParameters, qsgd } from "./codecs/qsgd/qsgd.ts";
import { scaledSign } from "./codecs/scaled-sign/scaled-sign.ts";
import { sign } from "./codecs/sign/sign.ts";
import { ternary } from "./codecs/ternary/ternary.ts";
import { terngrad } from "./codecs/terngrad/terngrad.ts";
import { topK } from "./codecs/top-k/top-k.ts";
import { checkNames } from "./shared/parameters.ts";

/** The registry: every codec by its name in recipes, frames and the C library. Each factory checks its parameters. */
export const codecs: Readonly<Record<string, (parameters: Parameters) => Codec>> = {
  bf16: (parameters) => plain(bf16, parameters),
  count: (parameters) => count({ ranks: 1, ...parameters } as CountParameters),
  "dct-top-k": (parameters) => dctTopK(parameters as { block: number; k: number }),
  f16: (parameters) => plain(f16, parameters),
  int8,
  "scaled-sign": scaledSign,
  l1: (parameters) => l1(parameters as L1Parameters),
  linf: (parameters) => linf(parameters as LinfParameters),
  qsgd: (parameters) => qsgd(parameters as QsgdParameters),
  sign: (parameters) => plain(sign, parameters),
  ternary: (parameters) => plain(ternary, parameters),
  terngrad,
  "top-k": (parameters) => topK(parameters as { k: number }), // topK refuses a missing k
};

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
