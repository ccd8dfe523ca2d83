/**
 * The formats of pictures that are read. A file's first bytes tell its format; its ending tells only whether it is
 * meant to be a picture.
 */

export type PictureFormat = "jpeg" | "png" | "webp" | "gif" | "tiff" | "bmp" | "netpbm";

interface Format {
  readonly endings: readonly string[];
  /** Whether a file of this format has these first bytes, as characters. */
  begins(first: string): boolean;
}

const formats: Readonly<Record<PictureFormat, Format>> = {
  jpeg: { endings: ["jpg", "jpeg", "jpe", "jfif"], begins: (first) => first.startsWith("\xff\xd8\xff") },
  png: { endings: ["png", "apng"], begins: (first) => first.startsWith("\x89PNG\r\n\x1a\n") },
  webp: { endings: ["webp"], begins: (first) => first.startsWith("RIFF") && first.startsWith("WEBP", 8) },
  gif: { endings: ["gif"], begins: (first) => /^GIF8[79]a/.test(first) },
  tiff: {
    endings: ["tif", "tiff"],
    begins: (first) => ["II*\0", "MM\0*", "II+\0", "MM\0+"].some((begin) => first.startsWith(begin)), // + : BigTIFF
  },
  bmp: {
    endings: ["bmp"],
    begins: (first) => first.startsWith("BM") && bmpHeaderSizes.includes(first.charCodeAt(14)),
  },
  netpbm: { endings: ["ppm", "pgm", "pbm", "pnm"], begins: (first) => /^P[1-6][\s#]/.test(first) },
};

const bmpHeaderSizes = [12, 40, 52, 56, 64, 108, 124]; // OS/2's, and Windows' first to fifth

export const pictureEndings: readonly string[] = Object.values(formats).flatMap(({ endings }) =>
  endings.map((ending) => `.${ending}`),
);

const anyEnding = new RegExp(`\\.(${pictureEndings.map((ending) => ending.slice(1)).join("|")})$`, "i");

/** Whether the name of a file says that it is a picture. */
export const isPictureName = (name: string) => anyEnding.test(name);

/** The format of a file that begins with `first`; undefined for any other. */
export function formatOf(first: Uint8Array): PictureFormat | undefined {
  const characters = Buffer.from(first.buffer, first.byteOffset, Math.min(32, first.length)).toString("latin1");
  return (Object.keys(formats) as PictureFormat[]).find((format) => formats[format].begins(characters));
}
