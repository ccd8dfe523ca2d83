/**
 * Windows' and OS/2's bitmaps, which sharp does not read: 1, 4, 8, 16, 24 and 32 bits a pixel, RLE4 and RLE8, from the bottom up or from the top
 * down. Pixels are those of PIL. Of the header, https://learn.microsoft.com/en-us/windows/win32/gdi/bitmap-storage
 *
 *   0 "BM"  2 bytes of the file  6 0  10 where the pixels begin | 14 bytes of this header, by which its kind is known
 *   18 width  22 height, < 0 from the top down  26 1  28 bits a pixel  30 compression  34 … 46 colours of the palette  50 … 54 masks
 */
import type { RawPicture } from "./raw-picture.ts";

export interface BmpHeader {
  readonly width: number;
  readonly height: number;
  readonly topDown: boolean;
  readonly bits: number;
  readonly compression: number;
  /** Where in a pixel red, green and blue are, where it has 16 or 32 bits. */
  readonly masks: readonly [number, number, number];
  readonly pixelsAt: number;
  readonly palette: { readonly at: number; readonly colours: number; readonly bytesEach: 3 | 4 };
}

const [none, rle8, rle4, bitFields, alphaBitFields] = [0, 1, 2, 3, 6];

/** Reads the first bytes of a file. Throws `Error` for what is impossible. */
export function bmpHeader(first: Uint8Array): BmpHeader {
  const view = viewOf(first);
  try {
    return headerIn(view);
  } catch (error) {
    throw error instanceof RangeError ? new Error("it ends within its header") : error;
  }
}

function headerIn(view: DataView): BmpHeader {
  const [pixelsAt, size] = [view.getUint32(10, true), view.getUint32(14, true)];
  const old = size === 12; // OS/2's first header: sizes have 16 bits, colours 3 bytes
  const width = old ? view.getUint16(18, true) : view.getInt32(18, true);
  const signedHeight = old ? view.getUint16(20, true) : view.getInt32(22, true);
  const bits = view.getUint16(old ? 24 : 28, true);
  const compression = old ? none : view.getUint32(30, true);
  const isKnown =
    compression === none
      ? [1, 4, 8, 16, 24, 32].includes(bits)
      : compression === rle8
        ? bits === 8
        : compression === rle4
          ? bits === 4
          : (compression === bitFields || compression === alphaBitFields) && (bits === 16 || bits === 32);
  if (!isKnown) throw new Error(`BMP of ${bits} bits with compression ${compression} is not read`);
  const fields = compression === bitFields || compression === alphaBitFields;
  const masks = fields
    ? ([54, 58, 62].map((at) => view.getUint32(at, true)) as [number, number, number])
    : bits === 16
      ? ([0x7c00, 0x3e0, 0x1f] as const)
      : ([0xff0000, 0xff00, 0xff] as const);
  const behindMasks = size === 40 && fields ? (compression === alphaBitFields ? 16 : 12) : 0;
  const given = old ? 0 : view.getUint32(46, true);
  const colours = bits > 8 ? 0 : given === 0 ? 1 << bits : Math.min(given, 1 << bits);
  return {
    width,
    height: Math.abs(signedHeight),
    topDown: signedHeight < 0,
    bits,
    compression,
    masks,
    pixelsAt,
    palette: { at: 14 + size + behindMasks, colours, bytesEach: old ? 3 : 4 },
  };
}

/** Throws `Error` for a file that is cut short. */
export function decodeBmp(bytes: Uint8Array): RawPicture {
  const header = bmpHeader(bytes);
  const { width, height, topDown, bits, compression } = header;
  const data = new Uint8Array(width * height * 3);
  const rowOf = (y: number) => 3 * width * (topDown ? y : height - 1 - y);
  const put =
    bits <= 8
      ? paletted(bytes, header, data)
      : (at: number, pixel: number, [red, green, blue]: readonly Channel[]) => {
          data[at] = red!(pixel);
          data[at + 1] = green!(pixel);
          data[at + 2] = blue!(pixel);
        };
  const channels = header.masks.map(channelOf);
  if (compression === rle8 || compression === rle4) {
    const indices = runs(bytes.subarray(header.pixelsAt), header);
    for (let y = 0, i = 0; y < height; y++)
      for (let x = 0, at = rowOf(y); x < width; x++, at += 3) put(at, indices[i++]!, channels);
    return { width, height, data };
  }
  const rowBytes = 4 * Math.ceil((width * bits) / 32);
  if (header.pixelsAt + rowBytes * height > bytes.length) throw new Error("it is cut short");
  const view = viewOf(bytes);
  const perByte = 8 / bits;
  for (let y = 0, from = header.pixelsAt; y < height; y++, from += rowBytes)
    for (let x = 0, at = rowOf(y); x < width; x++, at += 3) {
      if (bits === 24) {
        data[at] = bytes[from + 3 * x + 2]!;
        data[at + 1] = bytes[from + 3 * x + 1]!;
        data[at + 2] = bytes[from + 3 * x]!;
      } else if (bits === 32) put(at, view.getUint32(from + 4 * x, true), channels);
      else if (bits === 16) put(at, view.getUint16(from + 2 * x, true), channels);
      else {
        const byte = bytes[from + Math.floor(x / perByte)]!;
        put(at, (byte >> (8 - bits - bits * (x % perByte))) & ((1 << bits) - 1), channels); // the first pixel is in the upper bits
      }
    }
  return { width, height, data };
}

type Channel = (pixel: number) => number;

/** The value of a channel in 8 bits, of any number of bits. */
function channelOf(mask: number): Channel {
  if (mask === 0) return () => 0;
  const shift = 31 - Math.clz32(mask & -mask);
  const most = mask >>> shift;
  return (pixel) => Math.floor((((pixel & mask) >>> shift) * 255) / most);
}

/** Writes the colour of an index. An index behind the palette is black. */
function paletted(bytes: Uint8Array, { palette: { at, colours, bytesEach } }: BmpHeader, data: Uint8Array) {
  if (at + colours * bytesEach > bytes.length) throw new Error("it ends within its palette");
  return (to: number, index: number) => {
    if (index >= colours) return;
    const colour = at + index * bytesEach; // blue, green, red
    data[to] = bytes[colour + 2]!;
    data[to + 1] = bytes[colour + 1]!;
    data[to + 2] = bytes[colour]!;
  };
}

/** The indices of a run-length encoded picture, from its first row on, (H, W). Pixels that no run covers have index 0. */
function runs(bytes: Uint8Array, { width, height, bits }: BmpHeader): Uint8Array {
  const indices = new Uint8Array(width * height);
  let [x, y, at] = [0, 0, 0];
  const put = (index: number) => {
    if (x < width && y < height) indices[y * width + x] = index;
    x++;
  };
  const half = (from: number, i: number) =>
    bits === 8 ? bytes[from + i]! : (bytes[from + (i >> 1)]! >> (i % 2 ? 0 : 4)) & 15;
  while (y < height) {
    if (at + 2 > bytes.length) throw new Error("it is cut short");
    const [count, value] = [bytes[at]!, bytes[at + 1]!];
    at += 2;
    if (count > 0) {
      for (let i = 0; i < count; i++) put(bits === 8 ? value : i % 2 ? value & 15 : value >> 4);
    } else if (value === 0) [x, y] = [0, y + 1];
    else if (value === 1) break;
    else if (value === 2) {
      if (at + 2 > bytes.length) throw new Error("it is cut short");
      [x, y] = [x + bytes[at]!, y + bytes[at + 1]!];
      at += 2;
    } else {
      const length = bits === 8 ? value : Math.ceil(value / 2);
      if (at + length > bytes.length) throw new Error("it is cut short");
      for (let i = 0; i < value; i++) put(half(at, i));
      at += length + (length % 2); // runs of indices end at an even byte
    }
  }
  return indices;
}

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
