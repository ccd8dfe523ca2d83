/**
 * Windows' and OS/2's bitmaps, which sharp does not read: 1, 4, 8, 16, 24 and 32 bits a pixel, RLE4 and RLE8, from the
 * bottom up or from the top down. Pixels are those of PIL. The header:
 * https://learn.microsoft.com/en-us/windows/win32/gdi/bitmap-storage
 *
 *    0 "BM"   2 bytes of the file   6 0   10 where the pixels begin, or 0: behind the palette
 *   14 bytes of this header, which tell its kind
 *   18 width   22 height, < 0 from the top down   26 1   28 bits a pixel   30 compression   34 …
 *   46 colours of the palette   50 …   54 masks
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
  const palette = { at: 14 + size + behindMasks, colours, bytesEach: old ? 3 : 4 } as const;
  return {
    width,
    height: Math.abs(signedHeight),
    topDown: signedHeight < 0,
    bits,
    compression,
    masks,
    pixelsAt: pixelsAt === 0 ? palette.at + colours * palette.bytesEach : pixelsAt,
    palette,
  };
}

/** Decodes a BMP file. Throws `Error` where it is cut short. */
export function decodeBmp(bytes: Uint8Array): RawPicture {
  const header = bmpHeader(bytes);
  const { width, height, topDown, bits, compression } = header;
  const data = new Uint8Array(width * height * 3);
  const write = bits <= 8 ? paletteWriter(bytes, header, data) : maskWriter(header, data);
  const pixelAt = compression === rle8 || compression === rle4 ? runs(bytes, header) : rows(bytes, header);
  for (let y = 0; y < height; y++) {
    const row = 3 * width * (topDown ? y : height - 1 - y);
    for (let x = 0; x < width; x++) write(row + 3 * x, pixelAt(x, y));
  }
  return { width, height, data };
}

/** Writes red, green and blue of a pixel to a place. */
type Writer = (at: number, pixel: number) => void;

/** A channel of any number of bits is scaled to 8. */
function maskWriter({ masks }: BmpHeader, data: Uint8Array): Writer {
  const channels = masks.map((mask) => {
    const shift = mask === 0 ? 0 : 31 - Math.clz32(mask & -mask);
    return { mask, shift, most: Math.max(1, mask >>> shift) };
  });
  return (at, pixel) => {
    for (let c = 0; c < 3; c++) {
      const { mask, shift, most } = channels[c]!;
      data[at + c] = Math.floor((((pixel & mask) >>> shift) * 255) / most);
    }
  };
}

/** A pixel is the index of a colour, which is stored as blue, green, red. An index behind the palette is black. */
function paletteWriter(bytes: Uint8Array, { palette }: BmpHeader, data: Uint8Array): Writer {
  const { at: begin, colours, bytesEach } = palette;
  if (begin + colours * bytesEach > bytes.length) throw new Error("it ends within its palette");
  return (at, index) => {
    if (index < colours) for (let c = 0; c < 3; c++) data[at + c] = bytes[begin + index * bytesEach + 2 - c]!;
  };
}

/** Column `x` of stored row `y`, the lowest one first unless the picture is from the top down. */
type Pixels = (x: number, y: number) => number;

/** Rows of whole 32-bit words. The first pixel of a byte is in its upper bits. */
function rows(bytes: Uint8Array, { width, height, bits, pixelsAt }: BmpHeader): Pixels {
  const rowBytes = 4 * Math.ceil((width * bits) / 32);
  if (pixelsAt + rowBytes * height > bytes.length) throw new Error("it is cut short");
  const begin = (y: number) => pixelsAt + y * rowBytes;
  if (bits < 8) {
    const [perByte, mask] = [8 / bits, (1 << bits) - 1];
    return (x, y) => (bytes[begin(y) + Math.floor(x / perByte)]! >> (8 - bits - bits * (x % perByte))) & mask;
  }
  const bytesEach = bits / 8;
  return (x, y) => {
    const at = begin(y) + x * bytesEach;
    let pixel = 0;
    for (let i = 0; i < bytesEach; i++) pixel |= bytes[at + i]! << (8 * i);
    return pixel;
  };
}

/** The indices of a run-length encoded picture. Pixels that no run covers have index 0. */
function runs(bytes: Uint8Array, { width, height, bits, pixelsAt }: BmpHeader): Pixels {
  const indices = new Uint8Array(width * height);
  let [x, y, at] = [0, 0, pixelsAt];
  const take = (count: number) => {
    if (at + count > bytes.length) throw new Error("it is cut short");
    at += count;
    return at - count;
  };
  const put = (index: number) => {
    if (x < width) indices[y * width + x] = index;
    x++;
  };
  /** The i-th of the indices that begin at a byte. In RLE4 a byte has two, the first one in its upper bits. */
  const indexAt = (from: number, i: number) =>
    bits === 8 ? bytes[from + i]! : (bytes[from + (i >> 1)]! >> (i % 2 === 0 ? 4 : 0)) & 15;
  while (y < height) {
    const pair = take(2);
    const [count, code] = [bytes[pair]!, bytes[pair + 1]!];
    if (count > 0)
      // A run of one color, or of two in turns.
      for (let i = 0; i < count; i++) put(bits === 8 ? code : indexAt(pair + 1, i % 2));
    else if (code === 0)
      [x, y] = [0, y + 1]; // the end of a row
    else if (code === 1)
      break; // the end of the picture
    else if (code === 2) {
      const jump = take(2);
      [x, y] = [x + bytes[jump]!, y + bytes[jump + 1]!];
    } else {
      const length = bits === 8 ? code : Math.ceil(code / 2);
      const from = take(length);
      for (let i = 0; i < code; i++) put(indexAt(from, i));
      at += length % 2; // they end at an even byte
    }
  }
  return (column, row) => indices[row * width + column]!;
}

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
