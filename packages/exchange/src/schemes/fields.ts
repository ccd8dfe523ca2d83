/**
 * The sum of a vector over the ranks, exactly as they wrote it: all measure with one unit, so levels mean the same on every rank and are
 * added as whole numbers. Quantised once, and not again on the way down.
 *
 *   S = max over ranks of scale(x_r)                         each region's: a vector's, a block's or a segment's
 *   u = the least fp32 with s u ≥ reach S                    s = 2^(p − 1) − 1;  reach: 2 of l1, 1 of the others
 *   q_r = Q(x_r / u)                                         −s … s: to the nearest (l1, int8), or drawn (linf, qsgd)
 *   into += scale · fp32(u Σ q_r)                            the same bits on every rank, in whatever order they were added
 *
 * int8 errs by at most P u/2 = P S/254 (and Σ's rounding to fp32), however the ranks' maxima differ; l1 by P u/2 where no |x| is beyond
 * 2 S, which it cuts off. What is drawn has no bias, and a variance of at most P u²/4.
 *
 * Two ways, which give the same bits:
 *
 *   owners         p bits up; each chunk's owner adds, and its whole numbers go down in the narrowest fields that hold P s
 *   direct         fields so wide that nothing carries, P (2^p − 1) ≤ 2^w − 1, in one summing all-reduce
 *
 * Sent by a rank: an all-reduce of 4 (R + 1) bytes, R regions, whose last element carries refusals; then, in bits an element times
 * (P − 1)/P, owners p + w′, direct 2 w. For 8 ranks of 5 bits 13 and 16, of int8 24 and 32. Messages: the all-reduce's, then 2 (P − 1),
 * or another all-reduce's. Held: 4 (R + 1) bytes, and what levels.ts holds.
 * Papers: Mishchenko, Wang, Kovalev, Richtárik 2022, "IntSGD", https://arxiv.org/abs/2102.08374, for sums of whole numbers by a factor
 * that every rank knows; Xin, Canini, Richtárik, Horváth 2023, "Global-QSGD", https://arxiv.org/abs/2305.18627, for a norm that is shared;
 * Sapio et al. 2021, "SwitchML", https://arxiv.org/abs/1903.06701, for a maximum that ranks agree on before each block
 */
import { type Codec, type Floats, l1, linf, type Parameters } from "@terse/codecs";
import { allReduceBytes, copy, type Group } from "@terse/collectives";
import { type Chunks, checkLength, checkOptions, chunksOf, type EncodeOptions, regionsOf, sliceOf } from "../chunks.ts";
import { type Cost, costOf } from "../cost.ts";
import { checkNotes, StepRefusedError } from "../refusal.ts";
import { type Loan, type Scratch, scratchOf } from "../scratch.ts";
import { byOwners, byOwnersCost, type Delivery, noteOfFailure } from "./by-owners.ts";

export interface SumOfFieldsOptions extends EncodeOptions {
  /** Σ x, times `scale`, is added to these n floats. */
  readonly into: Floats;
  /** l1, linf with evenly spaced levels, qsgd or int8, which says how many bits and what shares a scale. */
  readonly codec: Codec;
  /** What the sum is multiplied with before it is added: 1 unless given; 1/P makes it the mean. */
  readonly scale?: number | undefined;
}

export interface FieldsRequest {
  readonly x: Floats;
  readonly options: SumOfFieldsOptions;
  /** What `into` held is forgotten. */
  readonly over?: boolean;
}

/**
 * into += scale · Σ x, by way of owners. RangeError where no field has room for the sum of this many ranks. A NaN on one rank, and a sum
 * that may be beyond fp32, are refused on all of them, before any level was sent.
 */
export async function sumOfFields(
  group: Group,
  x: Floats,
  options: SumOfFieldsOptions,
  note = 0,
  gather: Group = group,
): Promise<void> {
  checkFields("sumOfFields", group, { x, options });
  await fieldsTogether(group, [{ x, options }], note, gather);
}

/** Several vectors: a small all-reduce of scales for each, side by side, and one message for all fields. */
export async function fieldsTogether(
  group: Group,
  requests: readonly FieldsRequest[],
  note: number,
  gather: Group,
  sent?: () => void,
): Promise<void> {
  const outcomes = await Promise.allSettled(requests.map((request) => agree(group, request, note)));
  const agreed = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  try {
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    const deliveries = requests.map((request, i) => deliveryOf(group, request, agreed[i]!.units));
    await byOwners(group, deliveries, 0, gather, sent);
  } finally {
    for (const one of agreed) one[Symbol.dispose]();
  }
}

/** into += scale · Σ x by a summing all-reduce of fields; the same bits, and errors, as `sumOfFields`. */
export async function sumOfFieldsDirect(group: Group, x: Floats, options: SumOfFieldsOptions, note = 0): Promise<void> {
  checkFields("sumOfFieldsDirect", group, { x, options });
  using agreed = await agree(group, { x, options }, note);
  const { units } = agreed;
  const { wide, elementBytes, elements } = layoutOf(options.codec, x.length, group.size);
  using loan = scratchOf(group).loan(elementBytes * elements);
  const wire = loan.bytes;
  const call: object = chunksOf(wide, x.length, 1).call(options, group.rank);
  wide.encode(wire, x, { ...call, units });
  await group.allReduce(elementBytes === 1 ? wire : new Uint16Array(wire.buffer, wire.byteOffset, elements), "sum");
  wide.decodeAdd(options.into, wire, { scale: options.scale, units });
}

export function sumOfFieldsCost(n: number, ranks: number, rank: number, codec: Codec): Cost {
  const { regions, chunks, downSizes } = layoutOf(codec, n, ranks);
  const memory = { writing: chunks.wholeBytes, reducing: 4 * chunks.lengthOf(rank) };
  const { bytes, messages, peakBytes } = byOwnersCost(chunks.sizes, downSizes, rank, memory);
  return costOf([allReduceBytes(regions + 1, 4, ranks, rank), { bytes, messages }], 4 * (regions + 1) + peakBytes);
}

export function sumOfFieldsDirectCost(n: number, ranks: number, rank: number, codec: Codec): Cost {
  const { regions, elementBytes, elements } = layoutOf(codec, n, ranks);
  const reduced = [allReduceBytes(regions + 1, 4, ranks, rank), allReduceBytes(elements, elementBytes, ranks, rank)];
  return costOf(reduced, 4 * (regions + 1) + elementBytes * elements);
}

/** Bytes held when all wires of the owners have come. */
export function sumOfFieldsHeld(n: number, ranks: number, codec: Codec): number {
  const { regions, downSizes } = layoutOf(codec, n, ranks);
  return 4 * (regions + 1) + downSizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** What cannot be right is refused before anything is sent. */
export function checkFields(where: string, group: Group, { x, options }: FieldsRequest): void {
  checkOptions(where, options.codec, x.length, options);
  checkLength(where, "into", options.into, x.length, "as x has");
  layoutOf(options.codec, x.length, group.size);
}

/** One vector's part in a joint message, once the units are agreed. */
export function deliveryOf(group: Group, { x, options, over }: FieldsRequest, units: Float32Array): Delivery {
  const { rank, size } = group;
  const { into, scale = 1 } = options;
  const { chunks, down, downSizes, downFrom, downWrites } = layoutOf(options.codec, x.length, size);
  const mine = chunks.lengthOf(rank);
  return {
    up: chunks.sizes,
    down: downSizes,
    write: (outgoing) =>
      chunks.write(outgoing, scratchOf(group), (codec, wire, begin, end) => {
        const call: object = chunks.call(options, rank, begin, end);
        codec.encode(wire, sliceOf(x, begin, end), { ...call, units });
      }),
    reduce(incoming, result) {
      if (mine === 0) return;
      using loan = scratchOf(group).loan(4 * mine);
      const Σq = loan.floats.fill(downFrom); // whole numbers, exact in fp32
      chunks.add(rank, incoming, Σq, {}, 1);
      downWrites(result, Σq);
    },
    finish(results) {
      for (const [r, wire] of results.entries()) {
        if (wire.length === 0) continue;
        const [first, count] = regionsOf(options.codec, chunks.starts[r]!, chunks.starts[r + 1]!);
        const part = sliceOf(into, chunks.starts[r]!, chunks.starts[r + 1]!);
        if (over) {
          using zeros = scratchOf(group).loan(4 * part.length);
          copy(part, zeros.floats.fill(0));
        }
        down[r]!.decodeAdd(part, wire, { scale, units: units.subarray(first, first + count) });
      }
    },
  };
}

/** What the ranks agreed on: a unit for each region, and behind them the refusal, in memory that goes back. */
class Agreed implements Disposable {
  readonly all: Float32Array;
  readonly units: Float32Array;
  readonly #loan: Loan;

  constructor(scratch: Scratch, regions: number) {
    this.#loan = scratch.loan(4 * (regions + 1));
    this.all = this.#loan.floats;
    this.units = this.all.subarray(0, regions);
  }

  [Symbol.dispose](): void {
    this.#loan[Symbol.dispose]();
  }
}

/** The units of a vector's regions, the same on every rank. Throws on every rank where one refuses. */
async function agree(group: Group, { x, options }: FieldsRequest, note: number): Promise<Agreed> {
  const { rank, size } = group;
  const { regions, unitOf, most } = layoutOf(options.codec, x.length, size);
  const agreed = new Agreed(scratchOf(group), regions);
  const { all, units } = agreed;
  try {
    const unwritten = noteOfFailure(() => options.codec.scales(x, units));
    if (note || unwritten) units.fill(0);
    // The lower the rank, the larger: all hear of the first that refuses.
    all[regions] = note || unwritten ? notes * (size - rank) + (note || unwritten) : 0;
    await group.allReduce(all, "max");
    const refusal = all[regions]!;
    const first = size - Math.floor(refusal / notes);
    checkNotes(Array.from({ length: size }, (_, r) => (r === first ? refusal % notes : 0)));
    for (let r = 0; r < regions; r++) units[r] = unitOf(units[r]!);
    if (!units.every((unit) => unit * most <= largestFloat))
      throw new StepRefusedError(undefined, "a value is beyond what its codec can write");
    return agreed;
  } catch (error) {
    agreed[Symbol.dispose]();
    throw error;
  }
}

const notes = 128; // there are that many, with 0
const largestFloat = 3.4028234663852886e38;

/** The least fp32 of which s reach as far as `reach` times the scale. */
function leastUnit(scale: number, reach: number, s: number): number {
  const unit = Math.fround((reach * scale) / s);
  if (unit * s >= reach * scale) return unit;
  number[0] = unit;
  bits[0]!++;
  return number[0];
}

const number = new Float32Array(1);
const bits = new Uint32Array(number.buffer);

/** How a vector of n floats goes, for so many ranks. */
interface Layout {
  readonly regions: number;
  unitOf(scale: number): number;
  /** The largest field that is read. */
  readonly most: number;
  /** By way of owners: fields of p bits up, and of each chunk the codec that reads what comes down. */
  readonly chunks: Chunks;
  readonly down: readonly Codec[];
  readonly downSizes: readonly number[];
  /** What the sums begin with, and how they are written. */
  readonly downFrom: number;
  downWrites(wire: Uint8Array, Σq: Float32Array): void;
  /** Direct: fields with room for all ranks. */
  readonly wide: Codec;
  readonly elementBytes: 1 | 2;
  readonly elements: number;
}

/** Remembered, as chunks are. */
function layoutOf(codec: Codec, n: number, ranks: number): Layout {
  const known = remembered.get(codec) ?? new Map<string, Layout>();
  remembered.set(codec, known);
  const key = `${n}/${ranks}`;
  const layout = known.get(key) ?? newLayout(codec, n, ranks);
  known.set(key, layout);
  return layout;
}

const remembered = new WeakMap<Codec, Map<string, Layout>>();

function newLayout(codec: Codec, n: number, ranks: number): Layout {
  const { make, bits, reach } = quantiserOf(codec);
  const { block, segments } = codec.parameters;
  const s = 2 ** (bits - 1) - 1;
  const room = ranks * (2 ** bits - 1);
  if (room > widest)
    throw new RangeError(
      `sumOfFields: ${ranks} ranks of ${bits} bits sum up to ${room}, and a field of 16 bits holds ${widest}: take fewer bits, or \`sum\`.`,
    );
  const chunks = chunksOf(make({ bits, block, segments, unscaled: true }), n, ranks);
  const wide = make({ bits, block, segments, unscaled: true, ranks });
  const width = wide.parameters.width ?? bits;

  const narrow = [2, 3, 4, 5, 6, 7, 8].find((w) => ranks * s <= 2 ** (w - 1) - 1);
  const shape = narrow ? { bits: narrow } : { bits, ranks, width: 16 };
  const whole = narrow === undefined ? undefined : l1({ bits: narrow, unscaled: true });
  const down = chunks.codecs.map(({ parameters }) => {
    const of = { ...(parameters.segments ? { segments: parameters.segments } : { block }) };
    return l1({ ...shape, ...of, unscaled: true }) as Codec;
  });
  const elementBytes = width === 16 ? 2 : 1;
  return {
    regions: segments?.length ?? regionsOf(codec, 0, n)[1],
    unitOf: (scale) => leastUnit(scale, reach, s),
    most: 2 ** Math.max(width, narrow ?? 16) - 1,
    chunks,
    down,
    downSizes: down.map((of, r) => (chunks.lengthOf(r) === 0 ? 0 : of.wireBytes(chunks.lengthOf(r)))),
    downFrom: whole ? 0 : lowBits + ranks * s,
    downWrites: (wire, Σq) => (whole ? whole.encode(wire, Σq, { units: one }) : writeLow16(wire, Σq)),
    wide,
    elementBytes,
    elements: wide.wireBytes(n) / elementBytes,
  };
}

const widest = 2 ** 16 - 1;
const one = Float32Array.of(1);

const lowBits = 2 ** 23; // from here to twice as much, fp32 is whole numbers, whose low bits are the mantissa's

/** Whole numbers from `lowBits` on, as unscaled l1 of 16 bits has them, at any byte. */
function writeLow16(wire: Uint8Array, { buffer, byteOffset, length }: Float32Array): void {
  const even = wire.byteOffset % 2 === 0 ? wire : new Uint8Array(wire.length);
  new Uint16Array(even.buffer, even.byteOffset, length).set(new Uint32Array(buffer, byteOffset, length));
  if (even !== wire) wire.set(even);
}

/** The unscaled codec that quantises as this one does, units given. */
function quantiserOf(codec: Codec): { make: (parameters: Parameters) => Codec; bits: number; reach: number } {
  const { name, parameters } = codec;
  const { bits = 8, levels } = parameters;
  const nearest = (given: Parameters) => l1(given as { bits: number }) as Codec;
  const drawn = (given: Parameters) => linf({ ...given, ...(levels && { levels }) } as { bits: number }) as Codec;
  if (levels !== "logarithmic" && !parameters.unscaled) {
    if (name === "l1") return { make: nearest, bits, reach: 2 };
    if (name === "int8") return { make: nearest, bits, reach: 1 };
    if (name === "linf" || name === "qsgd") return { make: drawn, bits, reach: 1 };
  }
  throw new RangeError(
    `sumOfFields: ${name} ${JSON.stringify(parameters)} cannot be agreed on; take l1, linf with evenly spaced levels, qsgd or int8, and leave unscaled out, or take \`sum\`.`,
  );
}
