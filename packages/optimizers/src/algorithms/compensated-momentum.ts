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
import { sumOfSquares } from "@terse/native-optimizers";
import { oneOf } from "@terse/options";
import { noGrad, type Tensor, zeros, zerosLike } from "@terse/tensor";
import type { Algorithm, OptimizerExchange, StepContext, Vector } from "./algorithm.ts";
import { layersOf } from "./layers.ts";
import type { OwnedShare, State } from "./state.ts";

export const scales = oneOf(["per-layer", "fused", "momentum-scaled"]);
export type Scale = "per-layer" | "fused" | "momentum-scaled";

const codec = scaledSign() as Codec;

export interface CompensationState extends State {
  readonly elements: { m: Tensor; workerError: Tensor };
  readonly owned: { serverError: OwnedShare };
  readonly scalars: { factors: number[] }; // of the layers' momenta before they are sent; 1 unless momentum-scaled
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
    const [begin, end] = ownedRange(vector.n, vector.ranks, vector.rank, codec);
    return {
      elements: { m: zerosLike(θ), workerError: zerosLike(θ) },
      owned: { serverError: { begin, values: zeros([end - begin]) } },
      scalars: { factors: vector.segments.map(() => 1) },
    };
  }

  message(vector: Vector): Message {
    return { kind: "meanErrorCompensated", n: vector.n, codec };
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
   * The error-compensated mean over ranks of β₁ m + (1 − β₁) g, for elements whose variance is not 0; m itself stays, so that a refused step
   * loses no momentum.
   */
  async average(
    g: Tensor,
    { elements: { m, workerError }, owned, scalars: { factors } }: CompensationState,
    variance: Tensor,
    exchange: OptimizerExchange,
    { gradientScale, vector }: StepContext,
  ): Promise<Tensor> {
    const mean = zerosLike(m);
    const own = noGrad(() => m.mul(this.#beta1).add_(g, { alpha: gradientScale * (1 - this.#beta1) }));
    this.#scaleLayers(own, vector, factors);
    await exchange.meanErrorCompensated(own, {
      into: mean,
      codec,
      workerError,
      serverError: owned.serverError.values,
      hold: zerosOf(variance),
    });
    own.dispose();
    this.#scaleLayers(
      mean,
      vector,
      factors.map((factor) => 1 / factor),
    );
    return mean;
  }

  #scaleLayers(x: Tensor, { offset, segments }: Vector, factors: readonly number[]): void {
    for (const [i, segment] of segments.entries()) {
      if (factors[i] === 1) continue;
      using layer = x.narrow(0, segment.offset - offset, segment.length);
      noGrad(() => layer.mul_(factors[i]!));
    }
  }
}

/** One bit an element, 1 where x is 0; x ≥ 0. */
function zerosOf(x: Tensor): Uint8Array {
  const wire = new Uint8Array(Math.ceil(x.length / 8));
  using negative = noGrad(() => x.neg());
  sign.encode(wire, negative, { zero: "plus" });
  return wire;
}
