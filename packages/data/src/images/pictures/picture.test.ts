/**
 * Pictures of all formats beside PIL's pixels of the same files; files that are no pictures, and files that ask for too
 * much.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsModules, runPython } from "../../../../tensor/src/testing/python.ts";
import { CorruptImage } from "../images.ts";
import { decodePicture, pictureSize } from "./picture.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-pictures-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const missing = needsModules("PIL");

/**
 * Runs a script that saves pictures with `save(name, image, …)` or `write(name, bytes)`; resolves to PIL's pixels of
 * them.
 */
async function madeByPil(
  script: string,
): Promise<{ name: string; width: number; height: number; pixels: Uint8Array }[]> {
  const path = mkdtempSync(join(folder, "pil-"));
  const outputs = await runPython(`
import io, os, struct, zlib
import numpy as np
from PIL import Image, ImageCms, ImageOps
random, W, H = np.random.default_rng(1), 24, 16
names = []
def write(name, data):
    names.append(name); open(os.path.join(${JSON.stringify(path)}, name), "wb").write(data)
def save(name, image, **options):
    names.append(name); image.save(os.path.join(${JSON.stringify(path)}, name), **options)
def waves(channels):
    y, x = np.mgrid[0:H, 0:W]
    return np.stack([(x * (5 + 3 * c) + y * (11 - 2 * c) + 60 * c) % 256 for c in range(channels)], -1).astype(np.uint8)
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(name, array, depth, kind, before=b""):
    rows = b"".join(b"\\0" + row.astype(">u2" if depth == 16 else "u1").tobytes() for row in array)
    header = struct.pack(">IIBBBBB", array.shape[1], array.shape[0], depth, kind, 0, 0, 0)
    write(name, b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
rgb, grey = Image.fromarray(waves(3)), Image.fromarray(waves(1)[..., 0])
rgba, la = Image.fromarray(waves(4), "RGBA"), Image.fromarray(waves(2), "LA")
profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())  # with red and green exchanged
tags = {bytes(profile[at:at + 4]): at for at in range(132, 132 + 12 * struct.unpack(">I", profile[128:132])[0], 12)}
red, green = tags[b"rXYZ"], tags[b"gXYZ"]
profile[red + 4:red + 12], profile[green + 4:green + 12] = profile[green + 4:green + 12], profile[red + 4:red + 12]
profile = bytes(profile)
${script}
for name in names:
    image = ImageOps.exif_transpose(Image.open(os.path.join(${JSON.stringify(path)}, name)))
    outputs[name] = torch.from_numpy(np.array(image.convert("RGB")))
`);
  return Promise.all(
    Object.entries(outputs).map(async ([name, tensor]) => {
      const [height, width] = tensor.shape as [number, number];
      return { name: join(path, name), width, height, pixels: (await tensor.toTypedArray()) as Uint8Array };
    }),
  );
}

async function expectPixelsOfPil(script: string, least: number): Promise<void> {
  const pictures = await madeByPil(script);
  expect(pictures.length).toBeGreaterThanOrEqual(least);
  for (const { name, width, height, pixels } of pictures) {
    expect(await pictureSize(name), name).toMatchObject({ width, height });
    const { data } = await decodePicture(name, {});
    const differing = pixels.findIndex((value, i) => value !== data[i]);
    expect([data.length, differing], name).toEqual([pixels.length, -1]);
  }
}

describe.skipIf(missing)(`pictures have PIL's pixels${missing}`, () => {
  it("of JPEG: grey, progressive, CMYK, YCCK, with a colour profile, turned by the camera", () =>
    expectPixelsOfPil(
      `
save("rgb.jpg", rgb, quality=95); save("444.jpg", rgb, quality=95, subsampling=0); save("progressive.jpg", rgb, progressive=True)
save("grey.jpg", grey); save("camera.JPG", rgb); save("web.jfif", rgb, format="JPEG"); save("profile.jpg", rgb, icc_profile=profile)
cmyk, buffer = Image.fromarray(waves(4), "CMYK"), io.BytesIO()
save("cmyk profile.jpg", cmyk, quality=100, icc_profile=profile)
cmyk.save(buffer, "JPEG", quality=100)
data = buffer.getvalue(); write("cmyk.jpg", data)
at = data.find(b"Adobe") - 4; length = struct.unpack(">H", data[at + 2:at + 4])[0]
write("cmyk without adobe.jpg", data[:at] + data[at + 2 + length:])
write("ycck.jpg", data[:at + 15] + b"\\2" + data[at + 16:])
for turned in range(2, 9):
    exif = Image.Exif(); exif[0x112] = turned; save(f"turned {turned}.jpg", rgb, exif=exif, quality=95)
`,
      18,
    ));

  it("of PNG: 1 to 16 bits, palettes, transparency, gamma, animation", () =>
    expectPixelsOfPil(
      `
for name, image in (("rgb", rgb), ("grey", grey), ("rgba", rgba), ("la", la), ("bits", grey.convert("1"))): save(name + ".png", image)
save("profile.png", rgb, icc_profile=profile); save("palette.png", rgb.quantize(200)); save("palette of 16.png", rgb.quantize(16))
save("palette with transparency.png", rgb.quantize(16), transparency=3)
save("one transparent colour.png", rgb, transparency=(10, 60, 120)); save("one transparent grey.png", grey, transparency=7)
save("animated.png", rgb, save_all=True, append_images=[rgba.convert("RGB")])
exif = Image.Exif(); exif[0x112] = 6; save("turned.png", rgb, exif=exif)
png("rgb of 16 bits.png", random.integers(0, 65536, (H, W, 3)), 16, 2)
png("rgba of 16 bits.png", random.integers(0, 65536, (H, W, 4)), 16, 6)
png("la of 16 bits.png", random.integers(0, 65536, (H, W, 2)), 16, 4)
png("gamma.png", waves(3), 8, 2, chunk(b"gAMA", struct.pack(">I", 100000)))
`,
      17,
    ));

  it("of WebP, GIF and TIFF: transparent, animated, compressed in their ways", () =>
    expectPixelsOfPil(
      `
save("lossy.webp", rgb, quality=90); save("lossless.webp", rgb, lossless=True); save("profile.webp", rgb, lossless=True, icc_profile=profile)
save("rgba.webp", rgba, lossless=True, exact=True); save("lossy rgba.webp", rgba, quality=90)
save("animated.webp", rgb, save_all=True, append_images=[rgb.rotate(180)], lossless=True)
save("palette.gif", rgb.quantize(200)); save("grey.gif", grey); save("interlaced.gif", rgb.quantize(20), interlace=1)
save("animated.gif", rgb.quantize(20), save_all=True, append_images=[rgb.rotate(180).quantize(20)])
for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"): save(f"{compression}.tif", rgb, compression=compression)
save("jpeg.tiff", rgb, compression="jpeg", quality=95); save("group 4.tif", grey.convert("1"), compression="group4")
for name, image in (("grey", grey), ("rgba", rgba), ("la", la), ("palette", rgb.quantize(30)), ("bits", grey.convert("1")),
                    ("cmyk", Image.fromarray(waves(4), "CMYK"))): save(name + ".tif", image)
save("pages.tif", rgb, save_all=True, append_images=[rgb.rotate(180)]); save("profile.tif", rgb, icc_profile=profile)
exif = Image.Exif(); exif[0x112] = 6; save("turned.tif", rgb, exif=exif)
def inks(name, array, order="<"):  # that PIL does not write: of 16 bits, and with a fifth ink
    count, bits = array.shape[-1], 8 * array.itemsize
    data = array.astype(array.dtype.newbyteorder(order)).tobytes(); more = struct.pack(order + "H" * count, *[bits] * count)
    short = lambda value: struct.unpack(order + "I", struct.pack(order + "HH", value, 0))[0]
    tags = [(256, 4, 1, W), (257, 4, 1, H), (258, 3, count, 8 + len(data)), (259, 3, 1, short(1)), (262, 3, 1, short(5)), (273, 4, 1, 8),
            (277, 3, 1, short(count)), (278, 4, 1, H), (279, 4, 1, len(data)), (284, 3, 1, short(1))] + [(338, 3, 1, 0)] * (count > 4)
    ifd = struct.pack(order + "H", len(tags)) + b"".join(struct.pack(order + "HHII", *tag) for tag in tags) + bytes(4)
    write(name, (b"II*\\0" if order == "<" else b"MM\\0*") + struct.pack(order + "I", 8 + len(data) + len(more)) + data + more + ifd)
wide = waves(4).astype(np.uint16) * 257
inks("inks of 16 bits.tif", wide); inks("big endian.tif", wide, ">"); inks("five inks.tif", waves(5))
`,
      27,
    ));

  it("of BMP: 1, 4, 8, 16, 24 and 32 bits, palettes, masks, RLE, from the top down, OS/2's", () =>
    expectPixelsOfPil(
      `
width, height = 13, 7
def bmp(name, bits, data, compression=0, palette=b"", size=40, masks=(), down=False, colours=0, told=True):
    mask = struct.pack("<" + "I" * len(masks), *masks)
    if size == 12: header = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        signed = -height if down else height
        header = struct.pack("<IiiHHIIiiII", size, width, signed, 1, bits, compression, len(data), 0, 0, colours, 0)
        header += mask if size == 40 else mask + bytes(size - 40 - len(mask))
    at = 14 + len(header) + len(palette)
    write(name + ".bmp", b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at if told else 0) + header + palette + data)
noise = lambda bits: random.bytes(4 * -(-width * bits // 32) * height)
palette = lambda n, each=4: b"".join(random.bytes(3) + bytes(each - 3) for _ in range(n))
bmp("1", 1, noise(1), palette=palette(2)); bmp("black and white", 1, noise(1), palette=bytes([0, 0, 0, 0, 255, 255, 255, 0]))
bmp("8 untold", 8, noise(8), palette=palette(256), told=False); bmp("565 untold", 16, noise(16), 3, masks=(0xF800, 0x7E0, 0x1F), told=False)
bmp("white and black", 1, noise(1), palette=bytes([255, 255, 255, 0, 0, 0, 0, 0]))
bmp("4", 4, noise(4), palette=palette(16)); bmp("few colours", 4, bytes(x & 0x33 for x in noise(4)), palette=palette(4), colours=4)
bmp("8", 8, noise(8), palette=palette(256)); bmp("grey", 8, noise(8), palette=b"".join(bytes([i, i, i, 0]) for i in range(256)))
bmp("8 down", 8, noise(8), palette=palette(256), down=True); bmp("24 down", 24, noise(24), down=True)
bmp("os2 8", 8, noise(8), palette=palette(256, 3), size=12); bmp("os2 24", 24, noise(24), size=12)
for bits in (16, 24, 32): bmp(str(bits), bits, noise(bits)); bmp(f"{bits} fifth", bits, noise(bits), size=124)
bmp("565", 16, noise(16), 3, masks=(0xF800, 0x7E0, 0x1F)); bmp("555", 16, noise(16), 3, masks=(0x7C00, 0x3E0, 0x1F))
bmp("32 masks", 32, noise(32), 3, masks=(0xFF0000, 0xFF00, 0xFF)); bmp("32 xbgr", 32, noise(32), 3, masks=(0xFF000000, 0xFF0000, 0xFF00))
bmp("bgra", 32, noise(32), 3, size=108, masks=(0xFF0000, 0xFF00, 0xFF, 0xFF000000))
bmp("rgba", 32, noise(32), 3, size=124, masks=(0xFF, 0xFF00, 0xFF0000, 0xFF000000))
runs8 = b"".join(bytes([5, y]) + bytes([0, 5]) + random.bytes(5) + b"\\0" + bytes([3, 99 - y]) + b"\\0\\0" for y in range(height)) + b"\\0\\1"
runs4 = b"".join(bytes([6, 30 + y]) + bytes([0, 5]) + random.bytes(3) + b"\\0" + bytes([2, 99 - y]) + b"\\0\\0" for y in range(height)) + b"\\0\\1"
bmp("rle8", 8, runs8, 1, palette=palette(256)); bmp("rle4", 4, runs4, 2, palette=palette(16))
skips = bytes([4, 9, 0, 2, 3, 1, 2, 7]) + b"\\0\\0" + b"".join(bytes([13, y]) + b"\\0\\0" for y in range(height - 2)) + b"\\0\\1"
bmp("rle8 with a jump", 8, skips, 1, palette=palette(256))
save("by pil.bmp", rgb); save("by pil palette.bmp", rgb.quantize(90)); save("by pil rgba.bmp", rgba)
`,
      29,
    ));

  it("of Netpbm: bits, grey and colours, in bytes and in text, of any largest value, with comments", () =>
    expectPixelsOfPil(
      `
save("rgb.ppm", rgb); save("grey.pgm", grey); save("bits.pbm", grey.convert("1")); save("any.pnm", rgb, format="PPM")
text = lambda values, most: " ".join(str(int(v) % (most + 1)) for v in values.ravel()).encode()
for most in (1, 2, 6, 100, 255): write(f"grey to {most}.pgm", b"P2\\n# a comment\\n24 16 # another\\n%d\\n" % most + text(waves(1), most))
for most in (2, 100, 255, 1000, 65535): write(f"rgb to {most}.ppm", b"P3 24 16 %d\\n" % most + text(waves(3).astype(int) * 257, most) + b"\\n# end")
write("bits in text.pbm", b"P1\\n#c\\n24 16\\n" + bytes(48 + v % 2 for v in waves(1).ravel()))
for most in (100, 1000, 65535):
    kind = ">u2" if most > 255 else "u1"
    write(f"bytes to {most}.ppm", b"P6 24 16 %d\\n" % most + (waves(3).astype(int) * 257 % (most + 1)).astype(kind).tobytes())
write("bytes to 7.pgm", b"P5\\t24\\r\\n16 7 " + (waves(1) % 8).tobytes())
`,
      18,
    ));

  it("but grey of 16 bits is scaled to 8, of which PIL makes white", async () => {
    const [picture] = await madeByPil(
      'values = random.integers(0, 65536, (H, W)); png("grey of 16 bits.png", values, 16, 0)',
    );
    const { data } = await decodePicture(picture!.name, {});
    const [first] = await sharp(picture!.name)
      .toColourspace("grey16")
      .raw({ depth: "ushort" })
      .toBuffer()
      .then((b) => new Uint16Array(b.buffer, b.byteOffset, 1));
    expect(new Set(picture!.pixels).has(255)).toBe(true);
    expect([...data.subarray(0, 3)]).toEqual([first! >> 8, first! >> 8, first! >> 8]);
  });
});

describe("a file that is no picture", () => {
  const refused = async (name: string, bytes: Uint8Array | string | undefined, why: RegExp) => {
    const path = join(folder, name);
    if (bytes !== undefined) writeFileSync(path, bytes);
    const errors = await Promise.all(
      [decodePicture(path, {}), decodePicture(path, { side: 8 })].map((each) => each.catch((error: Error) => error)),
    );
    for (const error of errors) {
      expect(error, name).toBeInstanceOf(CorruptImage);
      expect((error as Error).message, name).toMatch(why);
    }
  };

  it("is said to be what it is", async () => {
    await refused("empty.png", "", /^it is empty$/);
    await refused(
      "page.jpg",
      "<!DOCTYPE html><html>404",
      /^it is no picture that is read: it begins with "<!DOCTYPE html><"$/,
    );
    await refused("lfs.png", "version https://git-lfs.github.com/spec/v1", /begins with "version https:/);
    await refused("binary.jpg", Uint8Array.of(0, 1, 2, 255), /begins with "····"$/);
    await refused("absent.jpg", undefined, /^it does not exist$/);
    mkdirSync(join(folder, "folder.png"));
    await refused("folder.png", undefined, /^it is a folder and no regular file$/);
    symlinkSync("/dev/zero", join(folder, "zero.jpg"));
    await refused("zero.jpg", undefined, /^it is a device or socket and no regular file$/);
    execFileSync("mkfifo", [join(folder, "pipe.jpg")]);
    await refused("pipe.jpg", undefined, /^it is a named pipe and no regular file$/);
  });

  it.skipIf(process.getuid?.() === 0)("is not this user's to read (skipped as root, who may read all)", async () => {
    writeFileSync(join(folder, "secret.jpg"), "x", { mode: 0 });
    await refused("secret.jpg", undefined, /^permission denied$/);
  });

  it("is not given to libvips, which would draw SVG and read AVIF", async () => {
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="red"/></svg>';
    await refused("drawing.png", svg, /begins with "<svg xmlns/);
    const avif = await sharp({ create: { width: 8, height: 8, channels: 3, background: "red" } })
      .avif()
      .toBuffer();
    await refused("photo.jpg", avif, /begins with ".+ftypavif/);
    await refused("document.png", "%PDF-1.7", /begins with "%PDF/);
  });

  it("is a TIFF of YCbCr without JPEG, whose bytes libvips takes for RGB", async () => {
    const picture = sharp({ create: { width: 9, height: 9, channels: 3, background: "red" } });
    for (const compression of ["none", "lzw"] as const) {
      const tiff = await picture.clone().tiff({ compression }).toBuffer();
      const photometric = tiff.indexOf(Buffer.from([6, 1, 3, 0, 1, 0, 0, 0, 2, 0])); // tag 262, u16, one, RGB
      tiff[photometric + 8] = 6;
      await refused(
        `${compression}.tif`,
        tiff,
        /^it is a TIFF of YCbCr without JPEG, which is not read: save it as RGB$/,
      );
    }
  });

  it("is damaged: cut short, with a wrong checksum, without pixels", async () => {
    const noise = { type: "gaussian", mean: 120, sigma: 40 } as const;
    const picture = sharp({ create: { width: 99, height: 99, channels: 3, background: "grey", noise } });
    const [jpeg, png, webp, tiff, gif] = await Promise.all([
      picture.clone().jpeg().toBuffer(),
      picture.clone().png().toBuffer(),
      picture.clone().webp().toBuffer(),
      picture.clone().tiff({ compression: "lzw" }).toBuffer(),
      picture.clone().gif().toBuffer(),
    ]);
    const half = (bytes: Buffer) => bytes.subarray(0, bytes.length / 2);
    const changed = (bytes: Buffer, at: number) => {
      const copy = Buffer.from(bytes);
      copy[at]! ^= 1;
      return copy;
    };
    // All at once: libvips mixes up the words of errors that happen at the same time.
    await Promise.all([
      refused("half.jpg", half(jpeg), /^VipsJpeg: premature end of JPEG image$/),
      refused("half.png", half(png), /^vipspng: libpng read error$/),
      refused("sum of pixels.png", changed(png, png.length >> 1), /^vipspng: libpng read error$/),
      refused("sum of header.png", changed(png, 30), /^its data are damaged$/),
      refused("half.webp", half(webp), /^webp: unable to parse image$/),
      refused("half.tif", half(tiff), /^(?!Unknown).+/),
      refused("half.gif", half(gif), /^gifload(_buffer)?: Unexpected end of GIF source data$/),
      refused("header.jpg", jpeg.subarray(0, 150), /^VipsJpeg: /),
      refused(
        "flat.png",
        Buffer.concat([png.subarray(0, 20), Buffer.alloc(4), png.subarray(24)]),
        /^vipspng: |damaged/,
      ),
      refused("half.bmp", bmp(99, 99).subarray(0, 2000), /^it is cut short$/),
      refused("header.bmp", bmp(99, 99).subarray(0, 30), /^it ends within its header$/),
      refused("flat.bmp", bmp(0, 9), /^it has 0 × 9 pixels$/),
      refused("half.ppm", "P6 9 9 255\n123", /^it is cut short$/),
      refused("words.ppm", "P3 2 1 255\n1 2 3 a b c", /^its pixel is no number$/),
      refused("half.pgm", "P2 9", /^it is cut short$/),
      refused("bright.pgm", "P2 1 1 9\n10", /^a pixel has 10, and 9 is its largest value$/),
      refused("flat.pgm", "P5 0 1 255\n", /^it has 0 × 1 pixels$/),
      refused("deep.pgm", "P5 1 1 70000\n", /^its largest value is 70000, and 1 to 65535 are possible$/),
    ]);
  });

  it("has more pixels than there is memory for, by its header", async () => {
    const png = await sharp({ create: { width: 2, height: 2, channels: 4, background: "red" } })
      .png()
      .toBuffer();
    const header = Buffer.from(png);
    header.writeUInt32BE(20_000, 16);
    header.writeUInt32BE(20_000, 20);
    header.writeUInt32BE(crc32(header.subarray(12, 29)), 29);
    await refused("bomb.png", header, /^it has 20000 × 20000 pixels, which take 1526 MB, and 512 MB is the most$/);
    await refused(
      "bomb.bmp",
      bmp(100_000, 100_000).subarray(0, 200),
      /^it has 100000 × 100000 pixels, which take 28610 MB/,
    );
    await refused("bomb.pgm", "P5 99999 99999 255\n", /^it has 99999 × 99999 pixels/);
  });
});

it("large pictures are decoded one by one, and nothing of them is kept", async () => {
  const path = join(folder, "progressive.jpg");
  const side = 5000; // 72 MB of coefficients
  await sharp({ create: { width: side, height: side, channels: 3, background: "red" } })
    .jpeg({ progressive: true })
    .toFile(path);
  const script = `
    import { decodePicture } from ${JSON.stringify(new URL("picture.ts", import.meta.url).href)};
    const megabytes = () => process.resourceUsage().maxRSS / 1024;
    const before = megabytes();
    await Promise.all(Array.from({ length: 8 }, () => decodePicture(${JSON.stringify(path)}, { side: 8 })));
    console.log(megabytes() - before);
  `;
  const node = ["--conditions=@terse/source", "--input-type=module", "--eval", script];
  expect(Number(execFileSync(process.execPath, node, { encoding: "utf8" }))).toBeLessThan(300); // of eight, 576
});

it("a narrow picture is scaled too", async () => {
  for (const [width, height] of [
    [1, 65_500],
    [65_500, 1],
    [1, 1],
  ] as const) {
    const path = join(folder, `${width} × ${height}.jpg`);
    await sharp({ create: { width, height, channels: 3, background: "red" } })
      .jpeg()
      .toFile(path);
    const { data } = await decodePicture(path, { side: 8 });
    expect(data.length).toBe(8 * 8 * 3);
    expect(data[0]).toBeGreaterThan(250);
  }
});

/** The bytes of a black BMP with 24 bits a pixel. */
function bmp(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(54 + Math.min(1e6, 4 * Math.ceil((3 * width) / 4) * height));
  bytes.write("BM");
  bytes.writeUInt32LE(54, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(width, 18);
  bytes.writeInt32LE(height, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(24, 28);
  return bytes;
}
