/**
 * The exact sum over the ranks of their quantised vectors. The ranks first agree on a unit, so that a level has the
 * same value on every rank and levels are added as whole numbers. Vectors are quantised once, on the way up, and not
 * again on the way down.
 *
 *   S = max over ranks of scale(x_r)                         for each scale group: a vector, a block or a segment
 *   u = the least fp32 with s u ≥ reach S                    s = 2^(p − 1) − 1;  reach is 2 for l1, 1 for the others
 *   q_r = Q(x_r / u)                                         −s … s: nearest (l1, int8) or drawn (linf, qsgd)
 *   into += scale · fp32(u Σ q_r)                            the same bits on every rank, in any order of additions
 *
 * The error of int8 is at most P u/2 = P S/254, and the rounding of Σ to fp32, however different the ranks' maxima are;
 * that of l1 is P u/2 if no |x| exceeds 2 S, where it clips. Random rounding has no bias, and a variance of at most P
 * u²/4.
 *
 * Levels of p bits go up; each chunk's owner adds them, and its whole numbers come down in the narrowest fields that
 * hold P s.
 *
 * Sent by a rank, about, in bits an element times (P − 1)/P: p + w′. For 8 ranks and 5 bits that is 13, for int8 24.
 * Messages: those of the all-reduce of R scales, then 2 (P − 1). Held: 4 (R + 1) bytes, and the memory of
 * sum-of-levels.ts. Papers: Mishchenko, Wang, Kovalev, Richtárik 2022, "IntSGD", https://arxiv.org/abs/2102.08374, sums
 * whole numbers with a factor that every rank knows; Xin, Canini, Richtárik, Horváth 2023, "Global-QSGD",
 * https://arxiv.org/abs/2305.18627, shares a norm; Sapio et al. 2021, "SwitchML", https://arxiv.org/abs/1903.06701,
 * agrees on a maximum before each block
 */
import { type Codec, type Floats, l1, type Summable, SumTooWideError, scaleGroupsWithin } from "@terse/codecs";
import { allReduceBytes, copy, type Group } from "@terse/collectives";
import { byOwnersCost, OwnerPhases, type OwnerScheme } from "../by-owners/by-owners.ts";
import {
  checkLength,
  checkOptions,
  type EncodeOptions,
  type OwnedChunks,
  ownedChunks,
  sliceOf,
} from "../by-owners/owned-chunks.ts";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { StepRefusedError } from "../refusal.ts";
import { runStages, type Stage } from "../run-stages.ts";
import { type Loan, scratchOf } from "../scratch.ts";
import { type Kind, nothing } from "./kind.ts";
import type { CodecMessage } from "./via-owners.ts";

export interface SumOfFieldsOptions extends EncodeOptions {
  /** Σ x, times `scale`, is added to these n floats. */
  readonly into: Floats;
  /** l1, linf with evenly spaced levels, qsgd or int8, with its number of bits and its scale groups. */
  readonly codec: Codec;
  /** The factor of the sum when it is added: 1 unless given; 1/P gives the mean. */
  readonly scale?: number | undefined;
}

export interface FieldsRequest {
  readonly x: Floats;
  readonly options: SumOfFieldsOptions;
  /** The sum replaces the contents of `into`. */
  readonly replaces?: boolean;
}

/**
 * into += scale · Σ x. RangeError if no field can hold the sum of this many ranks. All ranks throw a StepRefusedError,
 * before any level is sent, if one rank has a NaN or if the sum may exceed fp32.
 */
export const sumOfFields: Kind<Floats, SumOfFieldsOptions, FieldsRequest, void, CodecMessage<"sumOfFields">> = {
  name: "sumOfFields",
  memory: "host",
  ask(x, options, { group }) {
    const request = { x, options };
    checkFields("sumOfFields", group, request);
    return request;
  },
  carry: carryFields,
  result: nothing,
  cost: (messages, ranks, rank) => (messages.length > 0 ? [sumsOfFieldsCost(messages, ranks, rank)] : []),
};

/** Several vectors: one all-reduce for all scales, and one message for all fields. */
export async function carryFields(requests: readonly FieldsRequest[], context: ExchangeContext): Promise<void> {
  using agreed = new AgreedUnits(requests, context);
  const schemes = requests.map((request, i) => fieldsScheme(context.up.group, request, agreed.units[i]!));
  using phases = new OwnerPhases(schemes, context);
  await runStages([agreed.stage, ...phases.stages], context);
  phases.handOut();
}

/** The parts of a request that its cost depends on: n elements and a codec. */
export interface Coded {
  readonly n: number;
  readonly codec: Codec;
}

/** Of vectors that are carried together. */
export function sumsOfFieldsCost(vectors: readonly Coded[], ranks: number, rank: number): Cost {
  const layouts = vectors.map(({ n, codec }) => layoutOf(codec, n, ranks));
  const scales = layouts.reduce((sum, { groups }) => sum + groups, 1); // the last one carries refusals
  const owners = layouts.map(({ chunks, downSizes }) =>
    byOwnersCost(chunks.sizes, downSizes, rank, {
      encoding: chunks.wholeBytes,
      reducing: 4 * chunks.lengthOf(rank),
    }),
  );
  const fields = {
    bytes: owners.reduce((sum, { bytes }) => sum + bytes, 0),
    messages: Math.max(0, ...owners.map(({ messages }) => messages)),
  };
  const peakBytes = owners.reduce((sum, cost) => sum + cost.peakBytes, 4 * scales);
  return costOf([allReduceBytes(scales, 4, ranks, rank), fields], peakBytes);
}

/** Bytes in memory when the wires of all owners have arrived. */
export function sumsOfFieldsBytes(vectors: readonly Coded[], ranks: number): number {
  const layouts = vectors.map(({ n, codec }) => layoutOf(codec, n, ranks));
  return layouts.reduce((sum, { groups, downSizes }) => sum + 4 * groups + downSizes.reduce((a, b) => a + b, 0), 4);
}

/** RangeError for wrong options, before anything is sent. */
export function checkFields(where: string, group: Group, { x, options }: FieldsRequest): void {
  checkOptions(where, options.codec, x.length, options);
  checkLength(where, "into", options.into, x.length, "as x has");
  layoutOf(options.codec, x.length, group.size);
}

/** The phases of one vector, with the units that the ranks have agreed on. */
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

/** The units of the scale groups of each vector, on which the ranks agree in one all-reduce. */
class AgreedUnits implements Disposable {
  readonly units: readonly Float32Array[];
  readonly stage: Stage;
  readonly #all: Float32Array; // of all vectors, and after them one element for the refusal
  readonly #layouts: readonly Layout[];
  readonly #loan: Loan;

  constructor(requests: readonly FieldsRequest[], { rank, size, scratch }: ExchangeContext) {
    this.#layouts = requests.map(({ x, options }) => layoutOf(options.codec, x.length, size));
    const begins = [0];
    for (const [i, { groups }] of this.#layouts.entries()) begins.push(begins[i]! + groups);
    this.#loan = scratch.loan(4 * (begins.at(-1)! + 1));
    this.#all = this.#loan.floats;
    this.units = this.#layouts.map(({ groups }, i) => this.#all.subarray(begins[i]!, begins[i]! + groups));
    this.stage = {
      on: "up",
      encode: () => {
        for (const [i, { x, options }] of requests.entries()) options.codec.scales(x, this.units[i]!);
      },
      call: async (group, note) => {
        if (note) this.#all.fill(0);
        // A lower rank has a larger number, so the maximum names the first rank that refuses.
        this.#all[this.#all.length - 1] = note ? notes * (size - rank) + note : 0;
        await group.allReduce(this.#all, "max");
        const refusal = this.#all.at(-1)!;
        const first = size - Math.floor(refusal / notes);
        return Array.from({ length: size }, (_, r) => (r === first ? refusal % notes : 0));
      },
      arrived: () => this.#toUnits(),
    };
  }

  /** All scales → units. Throws a StepRefusedError, on every rank alike, where a sum could be beyond fp32. */
  #toUnits(): void {
    for (const [v, { unitOf, largestField }] of this.#layouts.entries()) {
      const of = this.units[v]!;
      for (let i = 0; i < of.length; i++) of[i] = unitOf(of[i]!);
      if (!of.every((unit) => unit * largestField <= largestFloat))
        throw new StepRefusedError(undefined, "a value is beyond what its codec can write");
    }
  }

  [Symbol.dispose](): void {
    this.#loan[Symbol.dispose]();
  }
}

const notes = 128; // a note is 0 to 127
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

/** The layout of a vector of n floats for a number of ranks. */
interface Layout {
  readonly groups: number; // scale groups
  unitOf(scale: number): number;
  /** The largest number that a field holds. */
  readonly largestField: number;
  /** By owners: fields of p bits on the way up, and the codec of each chunk's sum on the way down. */
  readonly chunks: OwnedChunks;
  readonly down: readonly Codec[];
  readonly downSizes: readonly number[];
  /** The initial value of every sum. */
  readonly sumsStartAt: number;
  /** Writes a chunk's sums. */
  writeSums(wire: Uint8Array, Σq: Float32Array): void;
}

/** The layout, cached as owned chunks are. */
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
  const { bits, s, reach, codec: withRoomFor } = summableOf(codec);
  const { block, segments } = codec.parameters;
  const room = ranks * (2 ** bits - 1);
  if (room > widest)
    throw new SumTooWideError(
      "sumOfFields",
      `${ranks} ranks of ${bits} bits sum up to ${room}, and a field of 16 bits holds ${widest}: take fewer bits, or \`sum\` (in a recipe, another exchange.dense than int8).`,
    );
  const chunks = ownedChunks(withRoomFor(1) as Codec, n, ranks);
  const width = withRoomFor(ranks).parameters.width ?? bits; // of fields that hold the sum of all ranks

  const narrow = [2, 3, 4, 5, 6, 7, 8].find((w) => ranks * s <= 2 ** (w - 1) - 1);
  const shape = narrow ? { bits: narrow } : { bits, side: s, ranks, width: 16 };
  const whole = narrow === undefined ? undefined : l1({ bits: narrow, unscaled: true });
  const down = chunks.codecs.map(({ parameters }) => {
    const of = { ...(parameters.segments ? { segments: parameters.segments } : { block }) };
    return l1({ ...shape, ...of, unscaled: true }) as Codec;
  });
  return {
    groups: segments?.length ?? scaleGroupsWithin(codec.parameters, 0, n)[1],
    unitOf: (scale) => leastUnit(scale, reach, s),
    largestField: 2 ** Math.max(width, narrow ?? 16) - 1,
    chunks,
    down,
    downSizes: down.map((of, r) => (chunks.lengthOf(r) === 0 ? 0 : of.wireBytes(chunks.lengthOf(r)))),
    sumsStartAt: whole ? 0 : lowBits + ranks * s,
    writeSums: (wire, Σq) => (whole ? whole.encode(wire, Σq, { units: one }) : writeLow16(wire, Σq)),
  };
}

const widest = 2 ** 16 - 1;
const one = Float32Array.of(1);

const lowBits = 2 ** 23; // between 2²³ and 2²⁴ the mantissa of an fp32 number is the whole number less 2²³

/**
 * Writes whole numbers, to each of which `lowBits` was added, as 16-bit fields of unscaled l1; the wire may begin at an
 * odd byte.
 */
function writeLow16(wire: Uint8Array, { buffer, byteOffset, length }: Float32Array): void {
  const even = wire.byteOffset % 2 === 0 ? wire : new Uint8Array(wire.length);
  new Uint16Array(even.buffer, even.byteOffset, length).set(new Uint32Array(buffer, byteOffset, length));
  if (even !== wire) wire.set(even);
}

function summableOf({ name, parameters, summable }: Codec): Summable {
  if (summable && !parameters.unscaled) return summable;
  throw new RangeError(
    `sumOfFields: ${name} ${JSON.stringify(parameters)} has no units that ranks can agree on; take l1, linf with evenly spaced levels, qsgd or int8, without unscaled, or take \`sum\`.`,
  );
}
