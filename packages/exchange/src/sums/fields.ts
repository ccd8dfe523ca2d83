/**
 * The exact sum over the ranks of what their codecs wrote. The ranks agree on one unit first, so a level has the same value on every
 * rank and levels are added as whole numbers. They are quantised once, and not again on the way down.
 *
 *   S = max over ranks of scale(x_r)                         of each scale group: a vector, a block or a segment
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
 * Sent by a rank: an all-reduce of 4 (R + 1) bytes, R scale groups, whose last element carries refusals; then, in bits an element times
 * (P − 1)/P, owners p + w′, direct 2 w. For 8 ranks of 5 bits 13 and 16, of int8 24 and 32. Messages: the all-reduce's, then 2 (P − 1),
 * or another all-reduce's. Held: 4 (R + 1) bytes, and what levels.ts holds.
 * Papers: Mishchenko, Wang, Kovalev, Richtárik 2022, "IntSGD", https://arxiv.org/abs/2102.08374, for sums of whole numbers by a factor
 * that every rank knows; Xin, Canini, Richtárik, Horváth 2023, "Global-QSGD", https://arxiv.org/abs/2305.18627, for a norm that is shared;
 * Sapio et al. 2021, "SwitchML", https://arxiv.org/abs/1903.06701, for a maximum that ranks agree on before each block
 */
import { type Codec, type Floats, l1, type Summable, scaleGroupsWithin } from "@terse/codecs";
import { allReduceBytes, copy, type Group } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";
import { type CallOptions, carryOver, type ExchangeContext } from "../exchange-context.ts";
import {
  checkLength,
  checkOptions,
  type EncodeOptions,
  type OwnedChunks,
  ownedChunks,
  sliceOf,
} from "../owned-chunks.ts";
import { checkNotes, noteOf, StepRefusedError } from "../refusal.ts";
import { type Loan, type Scratch, scratchOf } from "../scratch.ts";
import { byOwners, byOwnersCost, failureOf, type OwnerScheme } from "./by-owners.ts";

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
  /** The sum replaces the contents of `into`. */
  readonly replaces?: boolean;
}

/**
 * into += scale · Σ x, by way of owners. RangeError where no field has room for the sum of this many ranks. A NaN on one rank, and a sum
 * that may be beyond fp32, are refused on all of them, before any level was sent.
 */
export async function sumOfFields(
  group: Group,
  x: Floats,
  options: SumOfFieldsOptions,
  call: CallOptions = {},
): Promise<void> {
  checkFields("sumOfFields", group, { x, options });
  await carryOver(group, call, (context) => carryFields([{ x, options }], context));
}

/** Several vectors: a small all-reduce of scales for each, at the same time, and one message for all fields. */
export async function carryFields(requests: readonly FieldsRequest[], context: ExchangeContext): Promise<void> {
  const outcomes = await Promise.allSettled(requests.map((request) => agree(request, context)));
  const agreed = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  try {
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    const schemes = requests.map((request, i) => fieldsScheme(context.up.group, request, agreed[i]!.units));
    await byOwners(schemes, context);
  } finally {
    for (const one of agreed) one[Symbol.dispose]();
  }
}

/** into += scale · Σ x by a summing all-reduce of fields; the same bits, and errors, as `sumOfFields`. */
export async function sumOfFieldsDirect(
  group: Group,
  x: Floats,
  options: SumOfFieldsOptions,
  call: CallOptions = {},
): Promise<void> {
  checkFields("sumOfFieldsDirect", group, { x, options });
  await carryOver(group, call, async (context) => {
    using agreed = await agree({ x, options }, context);
    const { units } = agreed;
    const { wide, elementBytes, elements } = layoutOf(options.codec, x.length, group.size);
    using loan = context.scratch.loan(elementBytes * elements);
    const wire = loan.bytes;
    wide.encode(wire, x, { ...(ownedChunks(wide, x.length, 1).call(options, group.rank) as object), units });
    const fields = elementBytes === 1 ? wire : new Uint16Array(wire.buffer, wire.byteOffset, elements);
    await context.up.allReduce(fields, "sum");
    wide.decodeAdd(options.into, wire, { scale: options.scale, units });
  });
}

export function sumOfFieldsCost(n: number, ranks: number, rank: number, codec: Codec): Cost {
  const { groups, chunks, downSizes } = layoutOf(codec, n, ranks);
  const memory = { encoding: chunks.wholeBytes, reducing: 4 * chunks.lengthOf(rank) };
  const { bytes, messages, peakBytes } = byOwnersCost(chunks.sizes, downSizes, rank, memory);
  return costOf([allReduceBytes(groups + 1, 4, ranks, rank), { bytes, messages }], 4 * (groups + 1) + peakBytes);
}

export function sumOfFieldsDirectCost(n: number, ranks: number, rank: number, codec: Codec): Cost {
  const { groups, elementBytes, elements } = layoutOf(codec, n, ranks);
  const reduced = [allReduceBytes(groups + 1, 4, ranks, rank), allReduceBytes(elements, elementBytes, ranks, rank)];
  return costOf(reduced, 4 * (groups + 1) + elementBytes * elements);
}

/** Bytes held when the wires of all owners have arrived. */
export function sumOfFieldsHeld(n: number, ranks: number, codec: Codec): number {
  const { groups, downSizes } = layoutOf(codec, n, ranks);
  return 4 * (groups + 1) + downSizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** Throws where options are wrong, before anything is sent. */
export function checkFields(where: string, group: Group, { x, options }: FieldsRequest): void {
  checkOptions(where, options.codec, x.length, options);
  checkLength(where, "into", options.into, x.length, "as x has");
  layoutOf(options.codec, x.length, group.size);
}

/** With the units that the ranks have agreed on. */
export function fieldsScheme(group: Group, { x, options, replaces }: FieldsRequest, units: Float32Array): OwnerScheme {
  const { rank, size } = group;
  const { into, scale = 1 } = options;
  const { chunks, down, downSizes, sumsStartAt, writeSums } = layoutOf(options.codec, x.length, size);
  const mine = chunks.lengthOf(rank);
  return {
    up: chunks.sizes,
    down: downSizes,
    encode: (outgoing) =>
      chunks.write(outgoing, scratchOf(group), (codec, wire, begin, end) => {
        const call: object = chunks.call(options, rank, begin, end);
        codec.encode(wire, sliceOf(x, begin, end), { ...call, units });
      }),
    reduce(incoming, result) {
      if (mine === 0) return;
      using loan = scratchOf(group).loan(4 * mine);
      const Σq = loan.floats.fill(sumsStartAt); // whole numbers, exact in fp32
      chunks.add(rank, incoming, Σq, {}, 1);
      writeSums(result, Σq);
    },
    handOut(results) {
      for (const [r, wire] of results.entries()) {
        if (wire.length === 0) continue;
        const [first, count] = scaleGroupsWithin(options.codec.parameters, chunks.starts[r]!, chunks.starts[r + 1]!);
        const part = sliceOf(into, chunks.starts[r]!, chunks.starts[r + 1]!);
        if (replaces) {
          using zeros = scratchOf(group).loan(4 * part.length);
          copy(part, zeros.floats.fill(0));
        }
        down[r]!.decodeAdd(part, wire, { scale, units: units.subarray(first, first + count) });
      }
    },
  };
}

/** What the ranks agree on: a unit for each scale group, and after them the refusal. */
class Agreed implements Disposable {
  readonly all: Float32Array;
  readonly units: Float32Array;
  readonly #loan: Loan;

  constructor(scratch: Scratch, groups: number) {
    this.#loan = scratch.loan(4 * (groups + 1));
    this.all = this.#loan.floats;
    this.units = this.all.subarray(0, groups);
  }

  [Symbol.dispose](): void {
    this.#loan[Symbol.dispose]();
  }
}

/** The units of a vector's scale groups, the same on every rank. Throws on every rank where one refuses. */
async function agree({ x, options }: FieldsRequest, context: ExchangeContext): Promise<Agreed> {
  const { rank, size, up, scratch } = context;
  const { groups, unitOf, largestField } = layoutOf(options.codec, x.length, size);
  const agreed = new Agreed(scratch, groups);
  const { all, units } = agreed;
  try {
    const failure = failureOf(() => options.codec.scales(x, units));
    const note = context.note || noteOf(failure);
    if (note) units.fill(0);
    // The lower the rank, the larger the number: the maximum names the first rank that refuses.
    all[groups] = note ? notes * (size - rank) + note : 0;
    await up.allReduce(all, "max");
    const refusal = all[groups]!;
    const first = size - Math.floor(refusal / notes);
    checkNotes(Array.from({ length: size }, (_, r) => (r === first ? refusal % notes : 0)));
    for (let i = 0; i < groups; i++) units[i] = unitOf(units[i]!);
    if (!units.every((unit) => unit * largestField <= largestFloat))
      throw new StepRefusedError(undefined, "a value is beyond what its codec can write");
    return agreed;
  } catch (error) {
    agreed[Symbol.dispose]();
    throw error;
  }
}

const notes = 128; // how many numbers a note can be, 0 included
const largestFloat = 3.4028234663852886e38;

/** The least fp32 u with s u ≥ reach · scale. */
function leastUnit(scale: number, reach: number, s: number): number {
  const unit = Math.fround((reach * scale) / s);
  if (unit * s >= reach * scale) return unit;
  number[0] = unit;
  bits[0]!++;
  return number[0];
}

const number = new Float32Array(1);
const bits = new Uint32Array(number.buffer);

/** How a vector of n floats is laid out, for so many ranks. */
interface Layout {
  readonly groups: number; // scale groups
  unitOf(scale: number): number;
  /** The largest number that a field holds. */
  readonly largestField: number;
  /** By way of owners: fields of p bits up, and the codec of each chunk's sum on the way down. */
  readonly chunks: OwnedChunks;
  readonly down: readonly Codec[];
  readonly downSizes: readonly number[];
  /** The number that every sum starts from, and how sums are written. */
  readonly sumsStartAt: number;
  writeSums(wire: Uint8Array, Σq: Float32Array): void;
  /** Direct: fields that hold the sum over all ranks. */
  readonly wide: Codec;
  readonly elementBytes: 1 | 2;
  readonly elements: number;
}

/** Cached, as owned chunks are. */
function layoutOf(codec: Codec, n: number, ranks: number): Layout {
  const known = cached.get(codec) ?? new Map<string, Layout>();
  cached.set(codec, known);
  const key = `${n}/${ranks}`;
  const layout = known.get(key) ?? newLayout(codec, n, ranks);
  known.set(key, layout);
  return layout;
}

const cached = new WeakMap<Codec, Map<string, Layout>>();

function newLayout(codec: Codec, n: number, ranks: number): Layout {
  const { bits, reach, codec: withRoomFor } = summableOf(codec);
  const { block, segments } = codec.parameters;
  const s = 2 ** (bits - 1) - 1;
  const room = ranks * (2 ** bits - 1);
  if (room > widest)
    throw new RangeError(
      `sumOfFields: ${ranks} ranks of ${bits} bits sum up to ${room}, and a field of 16 bits holds ${widest}: take fewer bits, or \`sum\`.`,
    );
  const chunks = ownedChunks(withRoomFor(1) as Codec, n, ranks);
  const wide = withRoomFor(ranks) as Codec;
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
    groups: segments?.length ?? scaleGroupsWithin(codec.parameters, 0, n)[1],
    unitOf: (scale) => leastUnit(scale, reach, s),
    largestField: 2 ** Math.max(width, narrow ?? 16) - 1,
    chunks,
    down,
    downSizes: down.map((of, r) => (chunks.lengthOf(r) === 0 ? 0 : of.wireBytes(chunks.lengthOf(r)))),
    sumsStartAt: whole ? 0 : lowBits + ranks * s,
    writeSums: (wire, Σq) => (whole ? whole.encode(wire, Σq, { units: one }) : writeLow16(wire, Σq)),
    wide,
    elementBytes,
    elements: wide.wireBytes(n) / elementBytes,
  };
}

const widest = 2 ** 16 - 1;
const one = Float32Array.of(1);

const lowBits = 2 ** 23; // from 2²³ to 2²⁴ fp32 holds the whole numbers, and their low bits are those of the mantissa

/** Writes whole numbers from `lowBits` on as the fields of unscaled l1 in 16 bits, at any byte. */
function writeLow16(wire: Uint8Array, { buffer, byteOffset, length }: Float32Array): void {
  const even = wire.byteOffset % 2 === 0 ? wire : new Uint8Array(wire.length);
  new Uint16Array(even.buffer, even.byteOffset, length).set(new Uint32Array(buffer, byteOffset, length));
  if (even !== wire) wire.set(even);
}

function summableOf({ name, parameters, summable }: Codec): Summable {
  if (summable && !parameters.unscaled) return summable;
  throw new RangeError(
    `sumOfFields: ${name} ${JSON.stringify(parameters)} cannot be agreed on; take l1, linf with evenly spaced levels, qsgd or int8, and leave unscaled out, or take \`sum\`.`,
  );
}
