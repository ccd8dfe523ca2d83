/**
 * All ranks count all votes: signs become the numbers 0 and 1 in fields of b bits, an ordinary all-reduce adds the
 * fields, and every rank compares the sums with P/2. Ishikawa et al. 2024, §3.1 "direct allreduce",
 * https://arxiv.org/abs/2411.16462
 *
 * The fields are those of the codec `count`: b is 2, 4, 8 or 16, by default the narrowest with P ≤ 2^b − 1, so that no
 * sum carries into the next field. A narrower b is a RangeError. The paper uses log2(P) + 1 bits, "in practice" packed
 * into 8-bit words.
 *
 * With F = ⌈b n / 8⌉ bytes, a rank
 *
 *   sends   an all-reduce of F bytes, about 2 (P − 1)/P · F, and P − 1 empty messages that carry the notes
 *   holds   F bytes, and the outcome's planes above the first
 */
import { count as countCodec } from "@terse/codecs";
import { allReduceBytes, allToAllBytes } from "@terse/collectives";
import { costOf } from "../cost.ts";
import { runStages, type Stage } from "../run-stages.ts";
import { settled } from "../settled.ts";
import { watched } from "../watched.ts";
import { planesOfCount } from "./outcome.ts";
import { noteOfVotes, type VoteScheme, voteScheme } from "./vote-scheme.ts";

export interface CountOptions {
  /**
   * Bits of a field: 2, 4, 8 or 16. Unless given, the narrowest that holds the number of ranks; a narrower one is a
   * RangeError.
   */
  readonly width?: number;
}

/** All ranks count all votes: an all-reduce adds them as fields of `width` bits. Ishikawa et al. 2024, §3.1. */
export function count({ width }: CountOptions = {}): VoteScheme {
  if (width !== undefined) countCodec({ ranks: 2, width }); // RangeError if there are no fields of this width
  /** The fields for the votes of this many ranks. */
  const fieldsFor = (ranks: number) => {
    const codec = countCodec({ ranks, width });
    return { width: codec.parameters.width ?? 1, bytes: (n: number) => codec.wireBytes(n) };
  };

  return voteScheme({
    name: "count",

    async carry(planes, outcome, context) {
      const [u] = planes;
      const { size, scratch } = context;
      const fields = fieldsFor(size);
      using sums = scratch.loan(fields.bytes(u!.length));
      const added = fields.width === 16 ? new Uint16Array(sums.bytes.buffer, 0, u!.length) : sums.bytes;
      u!.fill();
      const stage: Stage = {
        on: "up",
        encode: () => setFields(added, u!.signs, fields.width),
        async call(group, note) {
          const nothing = Array.from({ length: size }, () => u!.wire.subarray(0, 0));
          const noted = group.allToAll(nothing, nothing, { note: note || noteOfVotes(u!, context) });
          const reduced = group.allReduce(added, "sum");
          await settled<unknown>([noted, reduced]);
          return noted;
        },
      };
      await runStages([stage], context);

      watched(context.watch, "decode", () => {
        for (const [k, bit] of planesOfCount(outcome, size).entries())
          compareFields(planes[k]!.signs, added, fields.width, bit, u!.length);
      });
    },

    cost(n, ranks, rank) {
      const fields = fieldsFor(ranks);
      const bytes = fields.bytes(n);
      const elementBytes = fields.width === 16 ? 2 : 1;
      const notes = allToAllBytes(new Array<number>(ranks).fill(0), rank);
      return costOf([notes, allReduceBytes(bytes / elementBytes, elementBytes, ranks, rank)], bytes);
    },
  });
}

/** fields[i] ← 0 or 1. A byte holds 8 / width fields of neighbouring elements. */
export function setFields(fields: Uint8Array | Uint16Array, signs: Uint8Array, width: number): void {
  if (width === 16) {
    for (let i = 0; i < fields.length; i++) fields[i] = (signs[i >> 3]! >> (i & 7)) & 1;
    return;
  }
  // A byte of signs becomes `width` bytes of fields, which are looked up in a table and written as one number.
  const Numbers = { 2: Uint16Array, 4: Uint32Array, 8: Float64Array }[width]!;
  const spread = new Uint8Array(256 * width);
  for (let i = 0; i < 8 * 256; i++) spread[(i * width) >> 3]! |= ((i >> (3 + (i & 7))) & 1) << ((i * width) & 7);
  const table = new Numbers(spread.buffer as ArrayBuffer);
  const whole = new Numbers(fields.buffer as ArrayBuffer, fields.byteOffset, Math.floor(fields.length / width));
  for (let i = 0; i < whole.length; i++) whole[i] = table[signs[i]!]!;
  const rest = fields.subarray(whole.length * width);
  if (rest.length > 0) rest.set(spread.subarray(width * signs[whole.length]!).subarray(0, rest.length));
}

/** signs[i] ← bit(fields[i]) for n fields; pad bits 0. */
export function compareFields(
  signs: Uint8Array,
  fields: Uint8Array | Uint16Array,
  width: number,
  bit: (count: number) => boolean,
  n: number,
): void {
  signs.fill(0);
  if (width === 16) {
    for (let i = 0; i < n; i++) if (bit(fields[i]!)) signs[i >> 3]! |= 1 << (i & 7);
    return;
  }
  const fieldsPerByte = 8 / width;
  const table = Uint8Array.from({ length: 256 }, (_, byte) => {
    let bits = 0;
    for (let j = 0; j < fieldsPerByte; j++) if (bit((byte >> (j * width)) & ((1 << width) - 1))) bits |= 1 << j;
    return bits;
  });
  // `width` bytes of fields become a byte of signs. One loop for each width takes half the time of a general one.
  const whole = Math.floor(fields.length / width);
  if (width === 2)
    for (let i = 0, j = 0; i < whole; i++, j += 2) signs[i] = table[fields[j]!]! | (table[fields[j + 1]!]! << 4);
  else if (width === 4)
    for (let i = 0, j = 0; i < whole; i++, j += 4) {
      const low = table[fields[j]!]! | (table[fields[j + 1]!]! << 2);
      signs[i] = low | (table[fields[j + 2]!]! << 4) | (table[fields[j + 3]!]! << 6);
    }
  else
    for (let i = 0, j = 0; i < whole; i++) {
      let byte = 0;
      for (let k = 0; k < 8; k++) byte |= table[fields[j++]!]! << k;
      signs[i] = byte;
    }
  for (let j = whole * width; j < fields.length; j++)
    signs[whole]! |= table[fields[j]!]! << ((j - whole * width) * fieldsPerByte);
  if (n % 8 > 0) signs[signs.length - 1]! &= (1 << (n % 8)) - 1;
}
