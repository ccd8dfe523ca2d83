/**
 * Fields: whole numbers of `width` bits side by side, least significant bit first, pad bits 0.
 *
 *   width 3    bit  0 1 2 3 4 5 6 7 | 8 9 …
 *                   x[0]  x[1]  x[2]···           eight fields take `width` bytes
 *
 * Fields of 4, 8 and 16 bits can be summed as bytes or 16-bit words: no field overflows into the next as long as
 * ranks (2^bits − 1) ≤ 2^width − 1; with s levels on each side of 0, ranks · 2 s ≤ 2^width − 1.
 */
import type { Parameters } from "@terse/native-codecs";
import { checkWhole, SumTooWideError } from "../parameters.ts";

export const fieldBytes = (n: number, width: number): number => Math.ceil((n * width) / 8);

/** Writes field i; its bits must be 0 before. */
export function setField(bytes: Uint8Array, i: number, width: number, value: number): void {
  for (let b = 0; b < width; b++) {
    const at = i * width + b;
    if ((value >> b) & 1) bytes[Math.floor(at / 8)]! |= 1 << (at % 8);
  }
}

export function field(bytes: Uint8Array, i: number, width: number): number {
  let value = 0;
  for (let b = 0; b < width; b++) {
    const at = i * width + b;
    value |= ((bytes[Math.floor(at / 8)]! >> (at % 8)) & 1) << b;
  }
  return value;
}

/** Bit i, as of packed signs and masks; false where there are no bytes. */
export const bitAt = (bytes: Uint8Array | undefined, i: number): boolean =>
  bytes !== undefined && ((bytes[i >> 3]! >> (i & 7)) & 1) === 1;

/** Bits of a field on the wire. */
export const widthOf = ({ bits = 1, width }: Parameters): number => width ?? bits;

/**
 * Checks that a field has room for the sum over all ranks. Returns the parameters with a width: the given one, which
 * must be one of `widths`, or else the narrowest with enough room.
 */
export function checkedFields<P extends Parameters>(codec: string, parameters: P, widths: readonly number[]): P {
  const { bits = 1, side, width, ranks = 1 } = parameters;
  checkWhole(codec, "ranks", ranks, 1, 2 ** 32 - 1);
  const most = ranks * (side ? 2 * side : 2 ** bits - 1);
  const narrowest = widths.find((w) => w >= bits && most <= 2 ** w - 1);
  if (width !== undefined && !widths.includes(width))
    throw new RangeError(
      `${codec}: width is ${width}, and fields of ${bits} ${bits === 1 ? "bit" : "bits"} per float are ${listed(widths)} bits wide.`,
    );
  if (width !== undefined && width < bits)
    throw new RangeError(
      `${codec}: width is ${width}, narrower than the ${bits} bits of one float; take a wider field, or fewer bits.`,
    );
  if (narrowest === undefined || (width !== undefined && most > 2 ** width - 1)) {
    const widest = width ?? widths.at(-1)!;
    const remedy =
      narrowest === undefined ? "take fewer bits or fewer ranks" : `take a width of ${narrowest}, or fewer bits`;
    throw new SumTooWideError(
      codec,
      `${ranks} ranks of ${bits} ${bits === 1 ? "bit" : "bits"} sum up to ${most}, and a field of ${widest} bits holds ${2 ** widest - 1}: ${remedy}.`,
    );
  }
  return width !== undefined || narrowest === bits ? parameters : { ...parameters, width: narrowest };
}

const listed = (numbers: readonly number[]): string => `${numbers.slice(0, -1).join(", ")} or ${numbers.at(-1)}`;
