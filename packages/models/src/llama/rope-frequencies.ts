/**
 * The angle by which each pair of dimensions turns from one position to the next, and the factor of cosines and sines.
 * Su et al. 2021, §3.2.2, https://arxiv.org/abs/2104.09864. In 32 bits and in the order of transformers' operations,
 * because the error of an angle grows with the position.
 */
import { arange, call, type Tensor, where } from "@terse/tensor";
import type { LlamaShape } from "./options.ts";
import type { RopeScaling } from "./rope-scaling.ts";

interface Frequencies {
  readonly frequencies: Tensor; // (e/2)
  readonly attentionFactor: number;
}
type Of<Name> = Extract<RopeScaling, { name: Name }>;

/** θ^(−2i/e), i = 0 … e/2 − 1, stretched. */
export function ropeFrequencies(shape: LlamaShape, device: string): Frequencies {
  const { headWidth: e, ropeTheta: θ, ropeScaling } = shape;
  const exponents = arange(0, e, 2, { dtype: "i64", device }).to("f32").div(e);
  const wavelengths = call("aten::pow.Scalar", θ, exponents) as Tensor; // over 2π
  const frequencies = wavelengths.reciprocal();
  switch (ropeScaling.name) {
    case "linear":
      return { frequencies: frequencies.div(ropeScaling.factor), attentionFactor: 1 };
    case "llama3":
      return { frequencies: llama3(frequencies, ropeScaling), attentionFactor: 1 };
    case "yarn":
      return yarn(wavelengths, shape, ropeScaling);
    default: // dynamic stretches beyond the context alone
      return { frequencies, attentionFactor: 1 };
  }
}

/** Long wavelengths are stretched, short ones are not, and between them it goes over smoothly. */
function llama3(frequencies: Tensor, of: Of<"llama3">): Tensor {
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalContext } = of;
  const wavelengths = frequencies.reciprocal().mul(2 * Math.PI);
  const turns = wavelengths.reciprocal().mul(originalContext);
  const kept = turns.sub(low).div(high - low);
  const between = kept.rsub(1).mul(frequencies).div(factor).add(kept.mul(frequencies));
  const isShort = wavelengths.lt(originalContext / high);
  const isLong = wavelengths.gt(originalContext / low);
  return where(isLong, frequencies.div(factor), where(isShort, frequencies, between));
}

/** Peng et al. 2023, §3.2: a ramp over the dimensions, by how often each turns within the original context. */
function yarn(wavelengths: Tensor, { headWidth: e, ropeTheta: θ }: LlamaShape, of: Of<"yarn">): Frequencies {
  const { factor, originalContext, betaFast, betaSlow, truncate } = of;
  const { attentionFactor = factor <= 1 ? 1 : 0.1 * Math.log(factor) + 1 } = of;
  /** The dimension that turns so many times within the original context. */
  const dimensionOf = (turns: number) => (e * Math.log(originalContext / (turns * 2 * Math.PI))) / (2 * Math.log(θ));
  const [from, to] = [dimensionOf(betaFast), dimensionOf(betaSlow)];
  const low = Math.max(truncate ? Math.floor(from) : from, 0);
  const high = Math.min(truncate ? Math.ceil(to) : to, e - 1);
  const ramp = arange(e / 2, { dtype: "f32", device: wavelengths.device })
    .sub(low)
    .div((low === high ? high + 0.001 : high) - low)
    .clamp({ min: 0, max: 1 });
  const kept = ramp.rsub(1);
  const stretched = wavelengths.mul(factor).reciprocal();
  return {
    frequencies: stretched.mul(kept.rsub(1)).add(wavelengths.reciprocal().mul(kept)),
    attentionFactor,
  };
}
