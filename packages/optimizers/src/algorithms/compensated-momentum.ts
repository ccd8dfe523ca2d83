/**
 * The compression stage that 1-bit Adam and 1-bit LAMB share: ranks average their momenta with one bit, and what one
 * bit cannot carry is added at the next step. Tang et al. 2021, Algorithm 1, https://arxiv.org/abs/2102.02888; Li et
 * al. 2021, Algorithm 1, lines 6 to 13, and Appendix A.5.2, https://arxiv.org/abs/2104.06069
 *
 *   m ← β₁ m + (1 − β₁) g                   this rank's own gradient
 *   m ← error-compensated mean over ranks of m
 *
 * `scale` says what shares the one magnitude that a rank sends with its signs:
 *
 *   per-layer          each layer has its own: small momenta keep their size, and messages leave bucket by bucket
 *   fused              all of the model, as in the papers; one message, after backward
 *   momentum-scaled    all of the model, with every layer's momentum brought to their mean size (Appendix A.5.2)
 *
 * Elements whose variance is 0 are neither sent nor counted, and their mean is 0: those that have had no gradient, and
 * pads between layers.
 */
import { type Codec, type Compensating, readOneScale, scaledSign } from "@terse/codecs";
import { retain } from "@terse/collectives";
import { type ErrorCompensation, type Message, ownedRange } from "@terse/exchange";
import { type NativeBuffer, type PackedMomentum, sumOfSquares } from "@terse/native-optimizers";
import { oneOf } from "@terse/options";
import { emptyLike, noGrad, type Tensor, zeros, zerosLike } from "@terse/tensor";
import type { Algorithm, OptimizerExchange, StepContext, Vector } from "./algorithm.ts";
import { memoryOf, slice } from "./kernels.ts";
import { layersOf } from "./layers.ts";
import type { OwnedShare, SentSigns, State } from "./state.ts";
import { maskOf, type Zeros, zerosIn } from "./zeros.ts";

export const scales = oneOf(["per-layer", "fused", "momentum-scaled"]);
export type Scale = "per-layer" | "fused" | "momentum-scaled";

const codec = scaledSign() as Codec & Compensating;

export interface CompensationErrors extends State {
  readonly elements: { workerError: Tensor }; // what this rank has not sent yet
  readonly owned: { serverError: OwnedShare };
  readonly unsettled: { workerError?: SentSigns; serverError?: SentSigns };
  readonly derived: { zeros?: Zeros | undefined }; // of the variance
}

export interface CompensationState extends CompensationErrors {
  readonly elements: CompensationErrors["elements"] & { m: Tensor };
  readonly scalars: { factors: number[] }; // of the layers' momenta before they are sent; 1 unless momentum-scaled
}

export function compensationErrors(θ: Tensor, { n, ranks, rank }: Vector): CompensationErrors {
  const [begin, end] = ownedRange(n, ranks, rank, codec);
  return {
    elements: { workerError: zeros(θ.shape) }, // errors are on the CPU, where the codec works
    owned: { serverError: { begin, values: zeros([end - begin]), alone: "workerError" } },
    unsettled: {},
    derived: {},
  };
}

export const compensatedMessage = ({ n }: Vector): Message => ({ kind: "meanErrorCompensated", n, codec });

function zerosOf(derived: CompensationErrors["derived"], variance: Tensor): Zeros {
  derived.zeros ??= zerosIn(variance);
  return derived.zeros;
}

/** How `exchange.meanErrorCompensated` adds a mean to `into`, for elements whose variance is not 0. */
export function compensation(
  into: Tensor,
  { elements: { workerError }, owned, derived }: CompensationErrors,
  variance: Tensor,
): ErrorCompensation {
  const { hold } = zerosOf(derived, variance);
  return { into, codec, workerError, serverError: owned.serverError.values, hold };
}

/**
 * A run of the averaged momentum. If it is packed, it is not in m yet: the pass that reads it first writes it there.
 */
export interface MomentumPart {
  readonly begin: number; // of its elements, in the vector or in the layer
  readonly end: number;
  readonly packed?: PackedMomentum;
  readonly before?: NativeBuffer; // m of the step before, where m is the mean already
}

/** The averaged momentum of a vector. */
export class MomentumMean implements Disposable {
  readonly #vector: Vector;
  readonly #before: Tensor | undefined;
  readonly parts: readonly MomentumPart[];

  constructor(vector: Vector, parts: readonly MomentumPart[], before?: Tensor) {
    this.#vector = vector;
    this.#before = before;
    this.parts = parts;
  }

  /** The parts of layer k, counted from its first element. */
  ofLayer(k: number): MomentumPart[] {
    const { offset, segments } = this.#vector;
    const first = segments[k]!.offset - offset;
    return this.parts.flatMap(({ begin, end, packed, before }) => {
      const [from, to] = [Math.max(first, begin), Math.min(first + segments[k]!.length, end)];
      if (from >= to) return [];
      const cut = (bits: Uint8Array | undefined) => maskOf(bits, from - begin, to - begin);
      return {
        begin: from - first,
        end: to - first,
        ...(packed && { packed: { ...packed, signs: cut(packed.signs)!, hold: cut(packed.hold) } }),
        ...(before && { before: slice(before, from - begin, to - begin) }),
      };
    });
  }

  [Symbol.dispose](): void {
    this.#before?.dispose();
  }
}

export class CompensatedMomentum {
  readonly splits: Algorithm["splits"];
  readonly #scale: Scale;
  readonly #beta1: number;
  readonly #keepsBefore: boolean;

  /** `keepsBefore`: whether the parts of a mean have the m of before, if they are not packed. */
  constructor(scale: Scale, beta1: number, { keepsBefore = false } = {}) {
    this.#scale = scale;
    this.#beta1 = beta1;
    this.#keepsBefore = keepsBefore;
    this.splits = scale === "per-layer" ? "at segments" : "nowhere";
  }

  init(θ: Tensor, vector: Vector): CompensationState {
    const errors = compensationErrors(θ, vector);
    return {
      ...errors,
      elements: { m: zerosLike(θ), ...errors.elements },
      scalars: { factors: vector.segments.map(() => 1) },
    };
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
   * One message: the error-compensated mean over ranks of β₁ m + (1 − β₁) g, for elements whose variance is not 0; 0
   * for the others. It comes packed where all of it is on the CPU and no layer is scaled: m is then still that of
   * before. Otherwise m ← the mean.
   */
  async average(
    g: Tensor,
    state: CompensationState,
    variance: Tensor,
    exchange: OptimizerExchange,
    { gradientScale, vector }: StepContext,
  ): Promise<MomentumMean> {
    const { m } = state.elements;
    const { factors } = state.scalars;
    const weights = { keep: this.#beta1, add: (1 - this.#beta1) * gradientScale };
    if (m.device === "cpu" && factors.every((factor) => factor === 1))
      return new MomentumMean(vector, await packedMean(g, state, variance, exchange, weights));

    const before = this.#keepsBefore ? noGrad(() => emptyLike(m).copy_(m)) : undefined;
    using own = noGrad(() => m.mul(weights.keep).add_(g, { alpha: weights.add }));
    scaleLayers(own, vector, factors);
    noGrad(() => m.zero_());
    await exchange.meanErrorCompensated(own, compensation(m, state, variance));
    const inverse = factors.map((factor) => 1 / factor);
    scaleLayers(m, vector, inverse);
    return new MomentumMean(vector, [{ begin: 0, end: vector.n, ...(before && { before: memoryOf(before) }) }], before);
  }
}

function scaleLayers(x: Tensor, { offset, segments }: Vector, factors: readonly number[]): void {
  for (const [i, segment] of segments.entries()) {
    if (factors[i] === 1) continue;
    using layer = x.narrow(0, segment.offset - offset, segment.length);
    noGrad(() => layer.mul_(factors[i]!));
  }
}

/**
 * One pass adds the momentum to the worker's error and writes its wire. Another adds the ranks' wires to the owner's
 * error and writes the wire of the mean. The same passes of the next step subtract from the errors what the wires have
 * sent.
 */
async function packedMean(
  g: Tensor,
  { elements: { m, workerError }, owned: { serverError }, unsettled, derived }: CompensationState,
  variance: Tensor,
  exchange: OptimizerExchange,
  weights: { keep: number; add: number },
): Promise<MomentumPart[]> {
  const n = m.length;
  const { begin: first, values } = serverError;
  const { hold } = zerosOf(derived, variance);
  using retained = retain(memoryOf(workerError), memoryOf(m), memoryOf(g), memoryOf(values));
  const [error, momentum, gradient, ownersError] = retained.buffers;

  const encode = (wire: Uint8Array) => {
    const sent = unsettled.workerError?.magnitude ?? 0;
    codec.encodeMomentum(wire, momentum, gradient, error, { ...weights, sent, hold });
    unsettled.workerError = { magnitude: readOneScale(wire).scale, hold };
  };

  const reduce = (wires: readonly Uint8Array[], result: Uint8Array) => {
    const sent = unsettled.serverError?.magnitude ?? 0;
    const mask = maskOf(hold, first, first + values.length);
    codec.encodeSum(result, wires, ownersError, { sent, scale: 1 / wires.length, hold: mask });
    unsettled.serverError = { magnitude: readOneScale(result).scale, hold: mask };
  };

  const wires = await exchange.meanOfWires({ n, encode, reduce, codec });
  return wires.map(({ begin, end, wire }) => ({
    begin,
    end,
    packed: { ...readOneScale(wire), hold: maskOf(hold, begin, end) },
  }));
}
