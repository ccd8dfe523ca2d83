/**
 * The compression stage that 1-bit Adam and 1-bit LAMB share: ranks average their momenta with one bit, and what one bit cannot carry is
 * added at the next step. Tang et al. 2021, Algorithm 1, https://arxiv.org/abs/2102.02888; Li et al. 2021, Algorithm 1, lines 6 to 13, and
 * Appendix A.5.2, https://arxiv.org/abs/2104.06069
 *
 *   m ← β₁ m + (1 − β₁) g                   this rank's own gradient
 *   m ← error-compensated mean over ranks of m
 *
 * `scale` says what shares the one magnitude that a rank sends with its signs:
 *   per-layer          each layer has its own, so that a layer of small momenta keeps its size; messages leave bucket by bucket
 *   fused              all of the model, as in the papers; one message, after backward
 *   momentum-scaled    all of the model, after every layer's momentum is brought to the mean size of the layers (Appendix A.5.2)
 *
 * Elements whose variance is 0 are neither sent nor counted, and their mean is 0: those that have had no gradient, and pads between layers.
 */
import { type Codec, scaledSign, sign } from "@terse/codecs";
import { type Message, ownedRange } from "@terse/exchange";
import { carryMomentum, sumOfSquares } from "@terse/native-optimizers";
import { oneOf } from "@terse/options";
import { noGrad, type Tensor, zeros, zerosLike } from "@terse/tensor";
import type { Algorithm, OptimizerExchange, StepContext, Vector } from "./algorithm.ts";
import { layersOf } from "./layers.ts";
import type { OwnedShare, State } from "./state.ts";

export const scales = oneOf(["per-layer", "fused", "momentum-scaled"]);
export type Scale = "per-layer" | "fused" | "momentum-scaled";

const codec = scaledSign() as Codec;

export interface CompensationErrors extends State {
  readonly elements: { workerError: Tensor }; // what this rank has not sent yet
  readonly owned: { serverError: OwnedShare };
}

export interface CompensationState extends CompensationErrors {
  readonly elements: CompensationErrors["elements"] & { m: Tensor };
  readonly scalars: { factors: number[] }; // of the layers' momenta before they are sent; 1 unless momentum-scaled
}

export function compensationErrors(θ: Tensor, { n, ranks, rank }: Vector): CompensationErrors {
  const [begin, end] = ownedRange(n, ranks, rank, codec);
  return {
    elements: { workerError: zeros(θ.shape) }, // errors are on the CPU, where the codec works
    owned: { serverError: { begin, values: zeros([end - begin]) } },
  };
}

export const compensatedMessage = ({ n }: Vector): Message => ({ kind: "meanErrorCompensated", n, codec });

/**
 * into += the error-compensated mean over ranks of x, for elements whose variance is not 0. Without an x it is added to the worker's error
 * already.
 */
export async function addCompensatedMean(
  into: Tensor,
  x: Tensor | undefined,
  { elements: { workerError }, owned }: CompensationErrors,
  variance: Tensor,
  exchange: OptimizerExchange,
): Promise<void> {
  const shared = { into, codec, serverError: owned.serverError.values, hold: holdOf(variance) };
  if (x) await exchange.meanErrorCompensated(x, { ...shared, workerError });
  else await exchange.meanErrorCompensated(workerError, shared);
}

export class CompensatedMomentum {
  readonly splits: Algorithm["splits"];
  readonly #scale: Scale;
  readonly #beta1: number;

  constructor(scale: Scale, beta1: number) {
    this.#scale = scale;
    this.#beta1 = beta1;
    this.splits = scale === "per-layer" ? "at segments" : "nowhere";
  }

  init(θ: Tensor, vector: Vector): CompensationState {
    const { elements, owned } = compensationErrors(θ, vector);
    return {
      elements: { m: zerosLike(θ), ...elements },
      owned,
      scalars: { factors: vector.segments.map(() => 1) },
    };
  }

  message(vector: Vector): Message {
    return compensatedMessage(vector);
  }

  /** At the first compressed step: sizes of the layers' momenta, √mean m², and their mean size over the layers. */
  chooseFactors({ elements: { m }, scalars }: CompensationState, vector: Vector): void {
    if (this.#scale !== "momentum-scaled") return;
    const sizes = layersOf(vector, { m }).map((layer) =>
      Math.sqrt(sumOfSquares(layer.m) / Math.max(1, layer.m.length)),
    );
    const united = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
    scalars.factors = sizes.map((size) => (size > 0 ? united / size : 1));
  }

  /**
   * m ← the error-compensated mean over ranks of β₁ m + (1 − β₁) g, for elements whose variance is not 0; 0 for the others. `last` ← the m of
   * before, where it is given.
   */
  async average(
    g: Tensor,
    state: CompensationState,
    variance: Tensor,
    exchange: OptimizerExchange,
    { gradientScale, vector }: StepContext,
    last?: Tensor,
  ): Promise<void> {
    const { m, workerError } = state.elements;
    const { factors } = state.scalars;
    const [keep, add] = [this.#beta1, (1 - this.#beta1) * gradientScale];
    if (m.device === "cpu" && factors.every((factor) => factor === 1))
      carryMomentum(workerError, m, g, { keep, add }, last);
    else {
      if (last) noGrad(() => last.copy_(m));
      using own = noGrad(() => m.mul(keep).add_(g, { alpha: add }));
      this.#scaleLayers(own, vector, factors);
      using here = own.to({ device: "cpu" });
      noGrad(() => [workerError.add_(here), m.zero_()]);
    }
    await addCompensatedMean(m, undefined, state, variance, exchange);
    this.#scaleLayers(
      m,
      vector,
      factors.map((factor) => 1 / factor),
    );
  }

  #scaleLayers(x: Tensor, { offset, segments }: Vector, factors: readonly number[]): void {
    for (const [i, segment] of segments.entries()) {
      if (factors[i] === 1) continue;
      using layer = x.narrow(0, segment.offset - offset, segment.length);
      noGrad(() => layer.mul_(factors[i]!));
    }
  }
}

const zerosKnown = new WeakMap<Tensor, { hold: Uint8Array | undefined }>(); // of variances that have not changed since

/** After a variance whose elements have been sent has changed, or has been restored. */
export const forgetZeros = (variance: Tensor): boolean => zerosKnown.delete(variance);

function holdOf(variance: Tensor): Uint8Array | undefined {
  const known = zerosKnown.get(variance) ?? { hold: zerosOf(variance) };
  zerosKnown.set(variance, known);
  return known.hold;
}

/** One bit an element, 1 where x is 0; x ≥ 0. Undefined where no element is. */
function zerosOf(x: Tensor): Uint8Array | undefined {
  const words = new Uint32Array(Math.ceil(x.length / 32));
  const bits = new Uint8Array(words.buffer, 0, Math.ceil(x.length / 8));
  using here = x.to({ device: "cpu" }); // where codecs work
  sign.encode(bits, here, { zero: "minus" });
  for (let i = 0; i < words.length; i++) words[i] = ~words[i]!;
  const inLast = x.length % 32;
  if (inLast > 0) words[words.length - 1]! &= 2 ** inLast - 1;
  return words.every((word) => word === 0) ? undefined : bits;
}
