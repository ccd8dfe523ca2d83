/** What libvips does not tell of a TIFF (TIFF 6.0, sections 2 and 21). */

const [compressionTag, photometricTag] = [259, 262];
const yCbCr = 6;
const jpegs = [6, 7]; // compressions: libjpeg makes RGB of them

/**
 * Whether the first page has YCbCr that is not compressed by JPEG: libvips gives its bytes for those of RGB. BigTIFF has
 * another layout, and is not looked into.
 *
 *   "II" or "MM", u16 42, u32 place of the page's tags:  u16 n, n × { u16 tag, u16 type, u32 count, value in 4 bytes }
 */
export function isPlainYCbCr(file: Buffer): boolean {
  const isLittle = file[0] === 0x49;
  const u16 = (at: number) => (at + 2 > file.length ? 0 : isLittle ? file.readUInt16LE(at) : file.readUInt16BE(at));
  const u32 = (at: number) => (at + 4 > file.length ? 0 : isLittle ? file.readUInt32LE(at) : file.readUInt32BE(at));
  if (u16(2) !== 42) return false;
  const tags = u32(4);
  const values = new Map<number, number>();
  for (let i = 0, at = tags + 2; i < u16(tags); i++, at += 12) values.set(u16(at), u16(at + 8));
  return values.get(photometricTag) === yCbCr && !jpegs.includes(values.get(compressionTag) ?? 1);
}
