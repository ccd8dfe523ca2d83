/** How fields whose units the ranks agree on are laid out, for a codec, a length and a number of ranks. */
import { type Codec, l1, type Summable, SumTooWideError, scaleGroupsWithin } from "@terse/codecs";
import { ownedChunks } from "../by-owners/owned-chunks.ts";
import { perCodec } from "../per-codec.ts";
import { type LevelSums, sizesOfSums } from "./level-sums.ts";

export interface FieldsLayout extends LevelSums {
  readonly groups: number; // scale groups
  unitOf(scale: number): number;
  /** The largest number that a field holds. */
  readonly largestField: number;
  /** The codec of each chunk's sum on the way down. */
  readonly down: readonly Codec[];
}

export const layoutOf = perCodec(newLayout);

function newLayout(codec: Codec, n: number, ranks: number): FieldsLayout {
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
    downSizes: sizesOfSums(chunks, (r) => down[r]!),
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
