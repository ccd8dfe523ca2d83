/**
 * The sum over the ranks of quantised levels, as whole numbers: Lion Cub's p-bit exchange. Ishikawa et al. 2024,
 * Algorithm 1, line 5, §4.2 and §6, https://arxiv.org/abs/2411.16462
 *
 *   q_r = Q₁(x_r)        −s … s, s ≤ 2^(p − 1) − 1     l1 or linf, unscaled: each rank has its own scale, so all have
 *                                                      equal weight
 *     or sign(x_r)       −1, 0 or 1, p = 2             ternary; not direct
 *   Σ q_r                exactly; Lion Cub's update is its sign, and 0 leaves the parameter unchanged
 *
 * Three ways use the same Σ q:
 *
 *   direct   the paper's: one summing all-reduce of fields of w bits with room for the sum, P (2^p − 1) ≤ 2^w − 1
 *   owners   p bits up; each chunk's owner adds; the sums come down in the narrowest fields with room for P s, w′ bits
 *   sign     p bits up; only the sign of the sum comes down, as two bit planes
 *
 * Sent by a rank, about:
 *
 *            bits an element, times (P − 1)/P   8 ranks, 5 bits   messages
 *   direct   2 w                                16                1 (P − 1 if small)
 *   owners   p + w′                             13                2 (P − 1)
 *   sign     p + 2                              7                 2 (P − 1)
 *
 * The direct sum has no headers for refusals: they follow the fields, one element for each rank.
 */
import { type Codec, count, type Floats, f16, SumTooWideError, ternary, type Zeros } from "@terse/codecs";
import { allReduceBytes, type Group } from "@terse/collectives";
import { byOwnersCost, type OwnerScheme } from "../by-owners/by-owners.ts";
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
import { bytesOf, PackedBits, Ternary } from "../packed-bits.ts";
import { runStages, type Stage } from "../run-stages.ts";
import { type Loan, scratchOf } from "../scratch.ts";
import { settled } from "../settled.ts";
import { watched } from "../watched.ts";
import { type Kind, nothing } from "./kind.ts";
import type { Coded } from "./sum-of-fields.ts";
import { type CodecMessage, viaOwners } from "./via-owners.ts";

export interface LevelsOptions extends EncodeOptions {
  /** l1 or linf with `unscaled`, whose `ranks` and `width` the exchange sets; or ternary. */
  readonly codec: Codec;
}

export interface SumOfLevelsOptions extends LevelsOptions {
  /** Σ q, times `scale`, is added to these n floats. */
  readonly into: Floats;
  readonly scale?: number | undefined;
}

/**
 * into += scale · Σ q. RangeError if the sum exceeds the fields on the way down: 8 bits, or f16's whole numbers up to
 * 2048.
 */
export const sumOfLevels: Kind<Floats, SumOfLevelsOptions, OwnerScheme, void, CodecMessage<"sumOfLevels">> = {
  ...viaOwners,
  name: "sumOfLevels",
  ask: (x, options, { group }) => sumScheme(group, x, options),
  result: nothing,
  cost: (messages, ranks, rank) =>
    messages.map(({ n, codec }) => levelsCost(n, ranks, rank, codec, wholeNumbers(codec, ranks))),
};

type SignPart = OwnerScheme & { readonly sign: () => Ternary };

/** sign(Σ q): −1, 0 or +1, for any number of ranks. */
export const signOfLevels: Kind<Floats, LevelsOptions, SignPart, Ternary, CodecMessage<"signOfLevels">> = {
  ...viaOwners,
  name: "signOfLevels",
  ask: (x, options, { group }) => signScheme(group, x, options),
  result: ({ sign }) => sign(),
  cost: (messages, ranks, rank) => messages.map(({ n, codec }) => signCost(n, ranks, rank, codec)),
};

/** into += scale · Σ q by a summing all-reduce. RangeError if no field can hold the sum of this many ranks. */
export const sumOfLevelsDirect: Kind<
  Floats,
  SumOfLevelsOptions,
  DirectRequest,
  void,
  CodecMessage<"sumOfLevelsDirect">
> = {
  name: "sumOfLevelsDirect",
  memory: "host",
  ask(x, options, { group }) {
    checkOptions("levels", summable(options.codec, group.size), x.length, options);
    checkLength("sumOfLevelsDirect", "into", options.into, x.length, "as x has");
    return { x, options };
  },
  carry: carryDirect,
  result: nothing,
  cost: (messages, ranks, rank) => (messages.length > 0 ? [directCost(messages, ranks, rank)] : []),
};

interface DirectRequest {
  readonly x: Floats;
  readonly options: SumOfLevelsOptions;
}

/** Several vectors: an all-reduce for all whose fields have elements of one size. */
async function carryDirect(requests: readonly DirectRequest[], context: ExchangeContext): Promise<void> {
  const bySize = Map.groupBy(requests, ({ options }) => elementBytesOf(summable(options.codec, context.size)));
  const sums = [...bySize].map(([elementBytes, sameSize]) => new DirectSum(elementBytes, sameSize, context));
  try {
    const stage: Stage = {
      on: "up",
      encode() {
        for (const sum of sums) sum.encode();
      },
      async call(group, note) {
        await settled(sums.map((sum) => group.allReduce(sum.noted(note), "sum")));
        return sums[0]!.notes;
      },
    };
    await runStages([stage], context);
    watched(context.watch, "decode", () => {
      for (const sum of sums) sum.decode();
    });
  } finally {
    for (const sum of sums) sum[Symbol.dispose]();
  }
}

/** The fields of several vectors, and after them one element for each rank's refusal. */
class DirectSum implements Disposable {
  readonly #parts: readonly (DirectRequest & { readonly codec: Codec; readonly fields: Uint8Array })[];
  readonly #summed: Uint8Array | Uint16Array;
  readonly #notes: Uint8Array | Uint16Array;
  readonly #rank: number;
  readonly #loan: Loan;

  constructor(elementBytes: 1 | 2, requests: readonly DirectRequest[], { rank, size, scratch }: ExchangeContext) {
    const codecs = requests.map(({ options }) => summable(options.codec, size));
    const lengths = requests.map(({ x }, i) => codecs[i]!.wireBytes(x.length));
    const elements = directElements(lengths, elementBytes, size);
    this.#loan = scratch.loan(elementBytes * elements);
    const wire = this.#loan.bytes.fill(0);
    this.#summed = elementBytes === 1 ? wire : new Uint16Array(wire.buffer, wire.byteOffset, elements);
    this.#notes = this.#summed.subarray(elements - size);
    this.#rank = rank;
    let end = 0;
    this.#parts = requests.map((request, i) => {
      const begin = end;
      end += lengths[i]!;
      return { ...request, codec: codecs[i]!, fields: wire.subarray(begin, end) };
    });
  }

  encode(): void {
    for (const { x, options, codec, fields } of this.#parts)
      codec.encode(fields, x, ownedChunks(codec, x.length, 1).call(options, this.#rank));
  }

  /** What is added, with this rank's note. */
  noted(note: number): Uint8Array | Uint16Array {
    this.#notes[this.#rank] = note;
    return this.#summed;
  }

  get notes(): number[] {
    return [...this.#notes];
  }

  decode(): void {
    for (const { codec, options, fields } of this.#parts)
      codec.decodeAdd(options.into, fields, { scale: options.scale ?? 1 });
  }

  [Symbol.dispose](): void {
    this.#loan[Symbol.dispose]();
  }
}

/** Of vectors that are carried together. */
function directCost(vectors: readonly Coded[], ranks: number, rank: number): Cost {
  const fields = vectors.map(({ n, codec }) => ({ n, codec: summable(codec, ranks) }));
  const sums = [...Map.groupBy(fields, ({ codec }) => elementBytesOf(codec))].map(([elementBytes, sameSize]) => {
    const lengths = sameSize.map(({ n, codec }) => codec.wireBytes(n));
    return { elementBytes, elements: directElements(lengths, elementBytes, ranks) };
  });
  return costOf(
    sums.map(({ elementBytes, elements }) => allReduceBytes(elements, elementBytes, ranks, rank)),
    sums.reduce((bytes, { elementBytes, elements }) => bytes + elementBytes * elements, 0),
  );
}

function sumScheme(group: Group, x: Floats, options: SumOfLevelsOptions): OwnerScheme {
  const { into, scale = 1 } = options;
  checkLength("sumOfLevels", "into", into, x.length, "as x has");
  const { phases, chunks, down } = levelsUp(group, x, options, wholeNumbers(options.codec, group.size));
  return {
    ...phases,
    handOut(results) {
      for (const [r, wire] of results.entries())
        if (wire.length > 0) down.decodeAdd(sliceOf(into, chunks.starts[r]!, chunks.starts[r + 1]!), wire, { scale });
    },
  };
}

/** The sign exists after `handOut`. */
function signScheme(group: Group, x: Floats, options: LevelsOptions): SignPart {
  const { phases, chunks } = levelsUp(group, x, options, ternary);
  let voted: Ternary | undefined;
  return {
    ...phases,
    handOut(results) {
      const scratch = scratchOf(group);
      voted = new Ternary(new PackedBits(x.length, scratch), new PackedBits(x.length, scratch));
      for (const [r, wire] of results.entries()) {
        const at = chunks.starts[r]! / 8;
        voted.plus.wire.set(wire.subarray(0, wire.length / 2), at);
        voted.nonzero.wire.set(wire.subarray(wire.length / 2), at);
      }
    },
    sign: () => voted!,
  };
}

function signCost(n: number, ranks: number, rank: number, codec: Codec): Cost {
  const cost = levelsCost(n, ranks, rank, codec, ternary);
  const wires = 2 * Math.ceil(n / 8); // the owners' wires, held while they are copied into planes
  return { ...cost, peakBytes: Math.max(cost.peakBytes, wires + 2 * bytesOf(n)) };
}

/** All phases except the last: levels of p bits go up, and the owner writes Σ q with the codec `down`. */
function levelsUp(group: Group, x: Floats, options: LevelsOptions, down: Codec) {
  const { rank, size } = group;
  checkOptions("levels", options.codec, x.length, options);
  const chunks = chunksUp(options.codec, x.length, size);
  const mine = chunks.lengthOf(rank);
  const downBytes = (r: number) => (chunks.lengthOf(r) === 0 ? 0 : down.wireBytes(chunks.lengthOf(r)));
  const phases: Omit<OwnerScheme, "handOut"> = {
    up: chunks.sizes,
    down: Array.from({ length: size }, (_, r) => downBytes(r)),
    encode: (outgoing) =>
      chunks.write(outgoing, scratchOf(group), (codec, wire, begin, end) =>
        codec.encode(wire, sliceOf(x, begin, end), chunks.call(options, rank, begin, end)),
      ),
    reduce(incoming, result) {
      if (mine === 0) return;
      using loan = scratchOf(group).loan(4 * mine);
      const Σq = loan.floats.fill(0); // whole numbers, exact in fp32
      chunks.add(rank, incoming, Σq, {}, 1);
      // `count` requires a sign of zero, but uses it only for fields of one bit.
      (down as Codec<Zeros>).encode(result, Σq, { zero: "plus" });
    },
  };
  return { phases, chunks, down };
}

function levelsCost(n: number, ranks: number, rank: number, codec: Codec, down: Codec): Cost {
  const chunks = chunksUp(codec, n, ranks);
  const sizes = chunks.sizes.map((_, r) => (chunks.lengthOf(r) === 0 ? 0 : down.wireBytes(chunks.lengthOf(r))));
  const memory = { encoding: chunks.wholeBytes, reducing: 4 * chunks.lengthOf(rank) };
  return byOwnersCost(chunks.sizes, sizes, rank, memory);
}

/** The chunks of one rank's levels of p bits. */
function chunksUp(codec: Codec, n: number, ranks: number): OwnedChunks {
  return ownedChunks(sendsSigns(codec) ? codec : summable(codec, 1), n, ranks);
}

/** The codec with fields for the sum of this many ranks. */
function summable(codec: Codec, ranks: number): Codec {
  const { name, parameters, summable: levels } = codec;
  if (!parameters.unscaled || !levels)
    throw new RangeError(
      `levels: ${name} ${JSON.stringify(parameters)} cannot be summed as whole numbers; take l1 or linf with unscaled, or \`sum\`.`,
    );
  const known = cached.get(codec) ?? new Map<number, Codec>();
  cached.set(codec, known);
  const wide = known.get(ranks) ?? (levels.codec(ranks) as Codec);
  known.set(ranks, wide);
  return wide;
}

const cached = new WeakMap<Codec, Map<number, Codec>>();

/** Whether the levels are −1, 0 and 1 as two planes of bits, which cannot be summed where they lie. */
const sendsSigns = ({ name }: Codec): boolean => name === ternary.name;

/** The narrowest codec that writes every whole number from −P s to P s. */
function wholeNumbers(codec: Codec, ranks: number): Codec {
  const { bits, s } = sendsSigns(codec) ? { bits: 2, s: 1 } : codec.summable!;
  const most = ranks * s;
  for (let wide = bits; wide <= 8; wide++) if (most <= 2 ** (wide - 1) - 1) return count({ bits: wide, ranks: 1 });
  if (most <= 2048) return f16;
  throw new SumTooWideError(
    "sumOfLevels",
    `${ranks} ranks of ${bits} bits sum up to ±${most}, and f16 holds whole numbers up to 2048: take fewer bits, or the direct sum.`,
  );
}

const elementBytesOf = ({ parameters }: Codec): 1 | 2 => (parameters.width === 16 ? 2 : 1);

/** The length of the direct sum: the fields of all vectors, and after them one element for each rank's refusal. */
const directElements = (lengths: readonly number[], elementBytes: number, ranks: number): number =>
  lengths.reduce((sum, bytes) => sum + bytes / elementBytes, ranks);
