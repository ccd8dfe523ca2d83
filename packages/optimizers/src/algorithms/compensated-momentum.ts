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
import { type Codec, type Compensating, readOneScale, scaledSign, sign } from "@terse/codecs";
import { retain } from "@terse/collectives";
import { type ChunkWire, type ErrorCompensation, type MeanOfWires, type Message, ownedRange } from "@terse/exchange";
import { type NativeBuffer, type PackedMomentum, sumOfSquares } from "@terse/native-optimizers";
import { oneOf } from "@terse/options";
import { emptyLike, noGrad, type Tensor, zeros, zerosLike } from "@terse/tensor";
import type { Algorithm, StepContext, Vector } from "./algorithm.ts";
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
    elements: { workerError: zeros(θ.shape, { device: deviceOfCodec(θ) }) },
    owned: { serverError: { begin, values: zeros([end - begin]), alone: "workerError" } },
    unsettled: {},
    derived: {},
  };
}

/** Where the codec works with what belongs to a tensor: on its device, or on the CPU. "meta" has shapes only. */
const deviceOfCodec = ({ device }: Tensor): string => (codec.runsOn(device) || device === "meta" ? device : "cpu");

export const compensatedMessage = ({ n }: Vector): Message => ({ kind: "meanErrorCompensated", n, codec });

function zerosOf(derived: CompensationErrors["derived"], variance: Tensor): Zeros {
  derived.zeros ??= zerosIn(variance);
  return derived.zeros;
}

/** How `exchange.meanErrorCompensated` averages a vector, for elements whose variance is not 0. */
export function compensation(
  { elements: { workerError }, owned, derived }: CompensationErrors,
  variance: Tensor,
): ErrorCompensation {
  const { hold } = zerosOf(derived, variance);
  return { codec, workerError, serverError: owned.serverError.values, hold };
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
   * What this rank sends of β₁ m + (1 − β₁) g, for elements whose variance is not 0. One pass adds the momentum to the
   * worker's error and writes its wire. Another adds the ranks' wires to the owner's error and writes the wire of the
   * mean. The same passes of the next step subtract from the errors what the wires have sent. On a GPU the worker's
   * error is settled at once, with the same bits.
   */
  ofRank(
    g: Tensor,
    state: CompensationState,
    variance: Tensor,
    { gradientScale, vector }: StepContext,
  ): MeanOfWires & Disposable {
    const { elements, owned, unsettled, derived } = state;
    const { begin: first, values } = owned.serverError;
    const { hold } = zerosOf(derived, variance);
    const weights = { keep: this.#beta1, add: (1 - this.#beta1) * gradientScale };
    const scaled = isPacked(state) ? undefined : this.#scaled(g, state, vector, weights);
    const [m, gradient] = scaled ? [scaled, scaled] : [elements.m, g];
    const retained = retain(elements.workerError, m, gradient, values); // any of them may be disposed meanwhile
    const [error, own, ofGradient, ownersError] = retained.buffers;
    return {
      n: vector.n,
      codec,

      encode(wire) {
        if (error.device !== "cpu") return codec.encodeWithFeedback(wire, own, error, { zero: "plus", hold });
        const sent = unsettled.workerError?.magnitude ?? 0;
        const sum = scaled ? { keep: 1, add: 0 } : weights;
        codec.encodeMomentum(wire, own, ofGradient, error, { ...sum, sent, hold });
        unsettled.workerError = { magnitude: readOneScale(wire).scale, hold };
      },

      reduce(wires, result) {
        const sent = unsettled.serverError?.magnitude ?? 0;
        const mask = maskOf(hold, first, first + ownersError.length);
        codec.encodeSum(result, wires, ownersError, { sent, scale: 1 / wires.length, hold: mask });
        unsettled.serverError = { magnitude: readOneScale(result).scale, hold: mask };
      },

      [Symbol.dispose]() {
        retained.release();
        scaled?.dispose();
      },
    };
  }

  /**
   * The averaged momentum, 0 where the variance is 0. It stays packed where all of it is on the CPU and no layer is
   * scaled: m is then still that of before. Otherwise m ← the mean.
   */
  ofWires(wires: readonly ChunkWire[], state: CompensationState, variance: Tensor, vector: Vector): MomentumMean {
    const { hold } = zerosOf(state.derived, variance);
    const parts = wires.map(({ begin, end, wire }) => ({
      begin,
      end,
      packed: { ...readOneScale(wire), hold: maskOf(hold, begin, end) },
    }));
    if (isPacked(state)) return new MomentumMean(vector, parts);

    const { m } = state.elements;
    const before = this.#keepsBefore ? noGrad(() => emptyLike(m).copy_(m)) : undefined;
    using mean = zeros(m.shape, { device: deviceOfCodec(m) });
    for (const { begin, end, packed } of parts) {
      const { signs, ...call } = packed;
      sign.decodeAdd(slice(memoryOf(mean), begin, end), signs, call);
    }
    noGrad(() => m.copy_(mean));
    const inverse = state.scalars.factors.map((factor) => 1 / factor);
    scaleLayers(m, vector, inverse);
    return new MomentumMean(vector, [{ begin: 0, end: vector.n, ...(before && { before: memoryOf(before) }) }], before);
  }

  /** β₁ m + (1 − β₁) g with every layer scaled, where the codec works. */
  #scaled(
    g: Tensor,
    { elements: { m }, scalars }: CompensationState,
    vector: Vector,
    { keep, add }: { keep: number; add: number },
  ): Tensor {
    using own = noGrad(() => m.mul(keep).add_(g, { alpha: add }));
    scaleLayers(own, vector, scalars.factors);
    return noGrad(() => own.to({ device: deviceOfCodec(m) }));
  }
}

/** Whether a mean may stay packed: kernels then read it in the pass that updates θ. */
const isPacked = ({ elements: { m }, scalars: { factors } }: CompensationState): boolean =>
  m.device === "cpu" && factors.every((factor) => factor === 1);

function scaleLayers(x: Tensor, { offset, segments }: Vector, factors: readonly number[]): void {
  for (const [i, segment] of segments.entries()) {
    if (factors[i] === 1) continue;
    using layer = x.narrow(0, segment.offset - offset, segment.length);
    noGrad(() => layer.mul_(factors[i]!));
  }
}
