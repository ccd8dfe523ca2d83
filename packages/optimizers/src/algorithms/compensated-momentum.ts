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
import { BadWireError, type Codec, scaledSign, sign } from "@terse/codecs";
import { retain } from "@terse/collectives";
import { type Message, ownedRange } from "@terse/exchange";
import { carryMean, carryMomentum, type PackedMomentum, sumOfSquares } from "@terse/native-optimizers";
import { oneOf } from "@terse/options";
import { noGrad, type Tensor, zeros, zerosLike } from "@terse/tensor";
import type { Algorithm, OptimizerExchange, StepContext, Vector } from "./algorithm.ts";
import { memoryOf } from "./kernels.ts";
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
    owned: { serverError: { begin, values: zeros([end - begin]), alone: "workerError" } },
  };
}

export const compensatedMessage = ({ n }: Vector): Message => ({ kind: "meanErrorCompensated", n, codec });

/** into += the error-compensated mean over ranks of x, for elements whose variance is not 0. */
export async function addCompensatedMean(
  into: Tensor,
  x: Tensor,
  { elements: { workerError }, owned }: CompensationErrors,
  variance: Tensor,
  exchange: OptimizerExchange,
): Promise<void> {
  const serverError = owned.serverError.values;
  await exchange.meanErrorCompensated(x, { into, codec, workerError, serverError, hold: zerosOf(variance).hold });
}

/** A run of the averaged momentum. Packed, it is not in m yet: the pass that reads it first writes it there. */
export interface MomentumPart {
  readonly begin: number; // of its elements in the vector
  readonly end: number;
  readonly packed?: PackedMomentum;
}

/** The parts of a vector's layer k, counted from its first element. */
export function partsOfLayer(parts: readonly MomentumPart[], { offset, segments }: Vector, k: number): MomentumPart[] {
  const first = segments[k]!.offset - offset;
  return parts.flatMap((part) => {
    const [from, to] = [Math.max(first, part.begin), Math.min(first + segments[k]!.length, part.end)];
    if (from >= to) return [];
    const cut = (bits: Uint8Array) => bits.subarray((from - part.begin) / 8, Math.ceil((to - part.begin) / 8));
    const { packed } = part;
    const signs = packed && { ...packed, signs: cut(packed.signs), hold: packed.hold && cut(packed.hold) };
    return { begin: from - first, end: to - first, ...(signs && { packed: signs }) };
  });
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

  /** Whether the mean comes packed: what one pass reads and writes is on the CPU, and no layer is scaled. */
  packs({ elements: { m }, scalars: { factors } }: CompensationState): boolean {
    return m.device === "cpu" && factors.every((factor) => factor === 1);
  }

  /**
   * The error-compensated mean over ranks of β₁ m + (1 − β₁) g, for elements whose variance is not 0; 0 for the others. Where it comes packed,
   * m is still that of before. Otherwise m ← the mean, and `last` ← the m of before, where it is given.
   */
  async average(
    g: Tensor,
    state: CompensationState,
    variance: Tensor,
    exchange: OptimizerExchange,
    { gradientScale, vector }: StepContext,
    last?: Tensor,
  ): Promise<readonly MomentumPart[]> {
    const { m } = state.elements;
    const { factors } = state.scalars;
    const weights = { keep: this.#beta1, add: (1 - this.#beta1) * gradientScale };
    if (this.packs(state)) return await packedMean(g, state, variance, exchange, weights);

    if (last) noGrad(() => last.copy_(m));
    using own = noGrad(() => m.mul(weights.keep).add_(g, { alpha: weights.add }));
    this.#scaleLayers(own, vector, factors);
    noGrad(() => m.zero_());
    await addCompensatedMean(m, own, state, variance, exchange);
    this.#scaleLayers(
      m,
      vector,
      factors.map((factor) => 1 / factor),
    );
    return [{ begin: 0, end: vector.n }];
  }

  /** Takes away from the errors what was sent of them. */
  settle({ elements: { workerError }, owned: { serverError } }: CompensationState, variance: Tensor): void {
    settleError(workerError, () => zerosOf(variance).hold);
    const { begin, values } = serverError;
    settleError(values, () => maskOf(zerosOf(variance).hold, begin, begin + values.length));
  }

  /** After the state has been restored. */
  forget({ elements: { workerError }, owned: { serverError } }: CompensationState, variance: Tensor): void {
    sent.delete(workerError);
    sent.delete(serverError.values);
    forgetZeros(variance);
  }

  #scaleLayers(x: Tensor, { offset, segments }: Vector, factors: readonly number[]): void {
    for (const [i, segment] of segments.entries()) {
      if (factors[i] === 1) continue;
      using layer = x.narrow(0, segment.offset - offset, segment.length);
      noGrad(() => layer.mul_(factors[i]!));
    }
  }
}

/** The magnitude that was sent of every element of an error, and that the next step takes away from it. */
const sent = new WeakMap<Tensor, number>();

function settleError(error: Tensor, holdOf: () => Uint8Array | undefined): void {
  const magnitude = sent.get(error) ?? 0;
  sent.delete(error);
  if (magnitude === 0) return;
  const signs = new Uint8Array(Math.ceil(error.length / 8));
  const hold = holdOf();
  sign.encode(signs, error, { zero: "plus", hold });
  sign.decodeAdd(error, signs, { scale: -magnitude, hold });
}

/**
 * One pass adds the momentum to the worker's error and writes its wire, | fp32 magnitude | signs |, as scaled-sign does; another one adds the
 * ranks' wires to the owner's error, and writes the wire of the mean.
 */
async function packedMean(
  g: Tensor,
  {
    elements: { m, workerError },
    owned: {
      serverError: { begin: first, values },
    },
  }: CompensationState,
  variance: Tensor,
  exchange: OptimizerExchange,
  weights: { keep: number; add: number },
): Promise<MomentumPart[]> {
  const zeros = zerosOf(variance);
  const { hold } = zeros;
  const n = m.length;
  using held = retain(memoryOf(workerError), memoryOf(m), memoryOf(g), memoryOf(values));
  const [error, momentum, gradient, ownersError] = held.buffers;

  const encode = (wire: Uint8Array) => {
    const carried = { ...weights, sent: sent.get(workerError) ?? 0, hold };
    const squares = carryMomentum(error, wire.subarray(4), momentum, gradient, carried);
    sent.set(workerError, writeMagnitude(wire, squares, n - zeros.count));
  };

  const reduce = (wires: readonly Uint8Array[], result: Uint8Array) => {
    const share = Math.fround(1 / wires.length);
    const packed = wires.map((wire) => ({ signs: wire.subarray(4), scale: share * magnitudeOf(wire) }));
    const { mask, spoken } = zeros.within(first, first + values.length);
    const carried = { sent: sent.get(values) ?? 0, hold: mask };
    const squares = carryMean(ownersError, result.subarray(4), packed, carried);
    sent.set(values, writeMagnitude(result, squares, spoken));
  };

  const wires = await exchange.meanOfWires({ n, encode, reduce, codec });
  return wires.map(({ begin, end, wire }) => {
    const packed = { signs: wire.subarray(4), scale: magnitudeOf(wire), hold: maskOf(hold, begin, end) };
    return { begin, end, packed };
  });
}

/** The root of the mean of the squares, which it returns. If it is 0, all bits are. */
function writeMagnitude(wire: Uint8Array, squares: number, count: number): number {
  const magnitude = count === 0 ? 0 : Math.fround(Math.sqrt(squares / count));
  if (magnitude === 0) wire.fill(0);
  else new DataView(wire.buffer, wire.byteOffset).setFloat32(0, magnitude, true);
  return magnitude;
}

function magnitudeOf(wire: Uint8Array): number {
  const magnitude = new DataView(wire.buffer, wire.byteOffset).getFloat32(0, true);
  if (!(magnitude >= 0 && magnitude < Number.POSITIVE_INFINITY))
    throw new BadWireError(`1-bit momentum: its magnitude is ${magnitude}, and no rank writes that.`);
  return magnitude;
}

/** The part of a mask for the elements [begin, end); begin is a multiple of 8. */
const maskOf = (hold: Uint8Array | undefined, begin: number, end: number): Uint8Array | undefined =>
  hold?.subarray(begin / 8, Math.ceil(end / 8));

/** The zeros of a variance. */
class Zeros {
  readonly hold: Uint8Array | undefined; // one bit an element, 1 where it is 0; undefined where none is
  readonly count: number;
  readonly #counts = new Map<number, number>(); // of parts, by where they begin

  constructor(bits: Uint8Array) {
    this.count = onesOf(bits);
    this.hold = this.count > 0 ? bits : undefined;
  }

  /** The mask of the elements [begin, end), and how many are not 0. begin is a multiple of 8, and each has one end. */
  within(begin: number, end: number): { mask: Uint8Array | undefined; spoken: number } {
    const mask = maskOf(this.hold, begin, end);
    const count = this.#counts.get(begin) ?? (mask ? onesOf(mask) : 0);
    this.#counts.set(begin, count);
    return { mask, spoken: end - begin - count };
  }
}

const zerosKnown = new WeakMap<Tensor, Zeros>(); // of variances that have not changed since

/** After a variance whose elements have been sent has changed, or has been restored. */
export const forgetZeros = (variance: Tensor): boolean => zerosKnown.delete(variance);

function zerosOf(variance: Tensor): Zeros {
  const known = zerosKnown.get(variance) ?? findZeros(variance);
  zerosKnown.set(variance, known);
  return known;
}

/** The zeros of x ≥ 0. */
function findZeros(x: Tensor): Zeros {
  const words = new Uint32Array(Math.ceil(x.length / 32));
  const bits = new Uint8Array(words.buffer, 0, Math.ceil(x.length / 8));
  using here = x.to({ device: "cpu" }); // where codecs work
  sign.encode(bits, here, { zero: "minus" });
  for (let i = 0; i < words.length; i++) words[i] = ~words[i]!;
  const inLast = x.length % 32;
  if (inLast > 0) words[words.length - 1]! &= 2 ** inLast - 1;
  return new Zeros(bits);
}

/** The number of bits that are 1. */
function onesOf(bytes: Uint8Array): number {
  let ones = 0;
  for (const byte of bytes) for (let left = byte; left !== 0; left &= left - 1) ones++;
  return ones;
}
