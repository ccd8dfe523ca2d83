/** A picture of red, green and blue, (H, W, 3) u8. No operation changes its input. */
export interface Pixels {
  readonly data: Uint8Array;
  readonly height: number;
  readonly width: number;
}

/** A copy of the picture with `value` applied to every byte; `value` may differ by channel. */
export function byTable({ data, height, width }: Pixels, value: (byte: number, channel: number) => number): Pixels {
  const tables = [0, 1, 2].map((channel) =>
    // Values beyond a byte become the nearest one.
    Uint8ClampedArray.from({ length: 256 }, (_, byte) => Math.floor(value(byte, channel))),
  );
  return { data: data.map((byte, i) => tables[i % 3]![byte]!), height, width };
}

/** How often each byte occurs in one channel. */
export function histogram({ data }: Pixels, channel: number): Uint32Array {
  const counts = new Uint32Array(256);
  for (let i = channel; i < data.length; i += 3) counts[data[i]!]!++;
  return counts;
}

/** Brightness of each pixel by ITU-R 601: (19595 R + 38470 G + 7471 B) / 2¹⁶, rounded. */
export function luma({ data, height, width }: Pixels): Uint8Array {
  return Uint8Array.from(
    { length: height * width },
    (_, i) => (data[3 * i]! * 19595 + data[3 * i + 1]! * 38470 + data[3 * i + 2]! * 7471 + 0x8000) >> 16,
  );
}
