/**
 * Pictures in files. Pixels are those of PIL's `Image.open(path).convert("RGB")`, turned upright as the camera's EXIF
 * note says. Colour profiles are not applied, transparency is dropped, and of an animation the first frame is taken.
 * Grey of 16 bits is scaled to 8, where PIL cuts it off at 255.
 *
 * A file is opened only if it is a regular one, and decoded only if its first bytes are those of a format that is read:
 * libvips would also take SVG, PDF or HEIF for a picture. A picture's memory follows from its header, and is limited
 * before anything is decoded.
 */
import { closeSync, existsSync, read } from "node:fs";
import { endianness } from "node:os";
import { promisify } from "node:util";
import type { Sharp, SharpOptions } from "sharp";
import { DataError, reasonOf, unreadable } from "../../data-error.ts";
import { NotRegularFile, openRegular } from "../../regular-file.ts";
import { CorruptImage } from "../images.ts";
import { bmpHeader, decodeBmp } from "./bmp.ts";
import { decodeNetpbm, netpbmHeader } from "./netpbm.ts";
import { formatOf, type PictureFormat } from "./picture-formats.ts";
import type { RawPicture } from "./raw-picture.ts";
import { Semaphore } from "./semaphore.ts";
import { isPlainYCbCr } from "./tiff.ts";

/** Bytes of a decoded picture, and of a file. PIL refuses more than 2²⁹ / 3 pixels. */
const mostBytes = 2 ** 29;

const atOnce = new Semaphore(16); // files that are open
const memory = new Semaphore(2 ** 30); // bytes of files and pixels

interface Header {
  readonly format: PictureFormat;
  readonly width: number; // of the upright picture
  readonly height: number;
  readonly channels: number;
  /** Bits of an ink, where the samples are inks. */
  readonly inkBits?: 8 | 16 | undefined;
  readonly bytes: number; // of all samples
}

/** Width and height of a picture as it is shown. Reads no pixels. Throws `CorruptImage`. */
export const pictureSize = (path: string): Promise<{ width: number; height: number }> => inFile(path, headerOf);

/**
 * The pixels of a picture. `check` may refuse it by its size. With `side` it is scaled so that the shorter side has so
 * many pixels, and the middle is cut out. Throws `CorruptImage`.
 */
export function decodePicture(
  path: string,
  { side, check }: { side?: number; check?: (size: { width: number; height: number }) => void },
): Promise<RawPicture> {
  return inFile(path, async (file) => {
    const header = await headerOf(file);
    check?.(header);
    const needed = file.size + header.bytes + 3 * header.width * header.height;
    return undisturbed(needed, async () => pixelsOf(await bytesOf(file, file.size), header, side));
  });
}

/** Calls of libvips that run at the same time mix up their error messages: a call that failed is repeated alone. */
async function undisturbed<T>(bytes: number, call: () => Promise<T>): Promise<T> {
  try {
    return await memory.use(bytes, call);
  } catch {
    return await memory.use(memory.total, call);
  }
}

interface File {
  readonly path: string;
  readonly descriptor: number;
  readonly size: number;
}

/** Uses an open file. Its errors become `CorruptImage`, but not those of a process that is out of files or memory. */
async function inFile<T>(path: string, use: (file: File) => Promise<T>): Promise<T> {
  try {
    return await atOnce.use(1, async () => {
      const { descriptor, status } = openRegular(path);
      try {
        return await use({ path, descriptor, size: status.size });
      } finally {
        closeSync(descriptor);
      }
    });
  } catch (error) {
    if (error instanceof DataError) throw error;
    if (["EMFILE", "ENFILE", "ENOMEM"].includes((error as NodeJS.ErrnoException).code ?? ""))
      throw unreadable(path, error);
    throw new CorruptImage(reasonOfPicture(error), { cause: error });
  }
}

/** The words of an error without those that say nothing. */
function reasonOfPicture(error: unknown): string {
  if (error instanceof NotRegularFile) return `it is ${error.message}`;
  const lines = reasonOf(error)
    .replace(/^Input (file|buffer) has corrupt header:/i, "")
    .split("\n");
  const first = lines.map((line) => line.trim()).find((line) => line !== "" && line !== "Unknown error");
  return first ?? "its data are damaged";
}

async function headerOf(file: File): Promise<Header> {
  const { size } = file;
  const beginning = await bytesOf(file, Math.min(size, 4096));
  const format = formatOf(beginning);
  if (beginning.length === 0) throw new Error("it is empty");
  if (format === undefined) throw new Error(`it is no picture that is read: it begins with ${shown(beginning)}`);
  const header =
    format === "bmp" || format === "netpbm"
      ? plainHeader(format, beginning)
      : await libvipsHeader(openName(file), format);
  const { width, height, bytes } = header;
  if (!(width > 0 && height > 0)) throw new Error(`it has ${width} × ${height} pixels`);
  const taken = bytes > mostBytes ? `${width} × ${height} pixels, which take ` : "";
  if (Math.max(bytes, size) > mostBytes)
    throw new Error(
      `it has ${taken}${megabytes(Math.max(bytes, size))} MB, and ${megabytes(mostBytes)} MB is the most`,
    );
  return header;
}

const megabytes = (bytes: number) => Math.round(bytes / 2 ** 20);

/** The first bytes of a file, as far as they can be shown. */
const shown = (bytes: Uint8Array) =>
  JSON.stringify(
    Buffer.from(bytes.subarray(0, 16))
      .toString("latin1")
      .replaceAll(/[^ -~]/g, "·"),
  );

function plainHeader(format: "bmp" | "netpbm", first: Uint8Array): Header {
  const { width, height } = format === "bmp" ? bmpHeader(first) : netpbmHeader(first);
  return { format, width, height, channels: 3, bytes: 3 * width * height };
}

const sampleBytes: Readonly<Record<string, number>> = {
  uchar: 1,
  char: 1,
  ushort: 2,
  short: 2,
  uint: 4,
  int: 4,
  float: 4,
};

const hasOpenNames = existsSync("/dev/fd");

/** A name of the open file itself: a pipe that has taken its place meanwhile would keep libvips waiting. */
const openName = ({ path, descriptor }: File) => (hasOpenNames ? `/dev/fd/${descriptor}` : path);

async function libvipsHeader(path: string, format: PictureFormat): Promise<Header> {
  const sharp = await libvips();
  const {
    width,
    height,
    autoOrient,
    channels,
    depth,
    space,
    format: found,
  } = await undisturbed(4096, () => sharp(path, reading).metadata());
  if (found !== format) throw new Error(`it begins as ${format} and is ${found}`);
  // libvips decodes GIF and WebP with transparency, also those that have none.
  const bytes = width * height * Math.max(4, channels) * (sampleBytes[depth] ?? 16);
  return { format, ...autoOrient, channels, inkBits: space === "cmyk" ? inkBitsOf(depth) : undefined, bytes };
}

function inkBitsOf(depth: string): 8 | 16 {
  if (depth !== "uchar" && depth !== "ushort")
    throw new Error(`it is CMYK of ${depth}, and inks of 8 or 16 bits are read`);
  return depth === "uchar" ? 8 : 16;
}

const reading: SharpOptions = { failOn: "error", ignoreIcc: true, limitInputPixels: mostBytes };

/** Only folders of pictures need it. */
async function libvips() {
  const { default: sharp } = await import("sharp");
  // The cache would keep the last hundred calls with all that they read: a gigabyte of a few large progressive JPEGs.
  sharp.cache(false);
  return sharp;
}

const readAt = promisify(read);

/** The first `count` bytes of a file, or fewer where it has become shorter. */
async function bytesOf({ descriptor }: File, count: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(count);
  let length = 0;
  for (let more = -1; more !== 0 && length < count; length += more)
    ({ bytesRead: more } = await readAt(descriptor, bytes, length, count - length, length));
  return bytes.subarray(0, length);
}

async function pixelsOf(
  bytes: Buffer,
  { format, channels, inkBits }: Header,
  side: number | undefined,
): Promise<RawPicture> {
  const sharp = await libvips();
  const scaled = (picture: Sharp) =>
    side === undefined ? picture : picture.resize(side, side, { fit: "cover", kernel: "linear" });
  const rgb = (picture: Sharp) => rawOf(picture.toColourspace("srgb").removeAlpha());
  const ofRaw = (picture: RawPicture) =>
    side === undefined
      ? picture
      : rgb(scaled(sharp(picture.data, { ...reading, raw: { ...sizeOf(picture), channels: 3 } })));

  if (format === "bmp") return ofRaw(decodeBmp(bytes));
  if (format === "netpbm") return ofRaw(decodeNetpbm(bytes));
  if (format === "tiff" && isPlainYCbCr(bytes))
    throw new Error("it is a TIFF of YCbCr without JPEG, which is not read: save it as RGB");
  const picture = sharp(bytes, reading).autoOrient();
  if (inkBits) return ofRaw(await fromCmyk(picture.pipelineColourspace("cmyk").toColourspace("cmyk"), inkBits));
  // libvips scales colours times opacity, PIL colours.
  const hasAlpha = channels === 2 || channels === 4;
  return hasAlpha ? ofRaw(await rgb(picture)) : rgb(scaled(picture));
}

const sizeOf = ({ width, height }: RawPicture) => ({ width, height });

async function rawOf(picture: Sharp): Promise<RawPicture> {
  const { data, info } = await picture.raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true });
  return { ...sizeOf(info as never), data: new Uint8Array(data.buffer, data.byteOffset, data.length) };
}

/**
 * R = (1 − C) (1 − K), as PIL has it, which takes the upper eight of 16 bits. (H, W, 4 or more) → (H, W, 3): what follows
 * the four inks is dropped, as transparency is.
 */
async function fromCmyk(picture: Sharp, bits: 8 | 16): Promise<RawPicture> {
  const depth = bits === 8 ? "uchar" : "ushort";
  const { data: samples, info } = await picture.raw({ depth }).toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  // Of 16 bits the upper byte, wherever this processor has it.
  const inks = bits === 8 ? samples : samples.subarray(endianness() === "LE" ? 1 : 0);
  const step = bits / 8;
  const data = new Uint8Array(3 * width * height);
  for (let from = 0, to = 0; to < data.length; from += channels * step, to += 3) {
    const light = 255 - inks[from + 3 * step]!;
    for (let c = 0; c < 3; c++) {
      const product = inks[from + c * step]! * light + 128;
      data[to + c] = light - ((product + (product >> 8)) >> 8); // divided by 255, and rounded
    }
  }
  return { width, height, data };
}
