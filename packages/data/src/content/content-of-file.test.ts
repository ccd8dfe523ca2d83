import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import zlib, { constants, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DataError } from "../data-error.ts";
import { beginningOf, contentOfFile } from "./content-of-file.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-content-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const put = (name: string, ...parts: (string | Uint8Array)[]) => {
  const path = join(folder, name);
  writeFileSync(path, Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array))));
  return path;
};
async function contentAt(path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const { bytes } of contentOfFile(path)) chunks.push(bytes);
  return Buffer.concat(chunks).toString("latin1");
}
async function refused(path: string, message: RegExp): Promise<void> {
  const error = await contentAt(path).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(DataError);
  expect((error as Error).message).toMatch(message);
}

/** Digits of which no two stretches are equal, so that a frame has more than one block. */
const digits = (count: number) => Array.from({ length: count }, (_, i) => (i * 7919).toString(36)).join(" ");
const checked = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };

const withoutZstd = zlib.zstdCompressSync === undefined ? " (skipped: this Node has no zstd)" : "";

describe("the content of a file", () => {
  it("is its bytes, of a file of any size", async () => {
    const text = digits(400_000);
    expect(text.length).toBeGreaterThan(2 << 20);
    expect((await contentAt(put("plain.txt", text))) === text).toBe(true);
    let read = 0;
    for await (const chunk of contentOfFile(join(folder, "plain.txt"))) read += chunk.read;
    expect(read).toBe(text.length);
  });

  it("is what was packed by gzip, of all members, whatever the name", async () => {
    for (const name of ["a.txt.gz", "a.GZ", "a"])
      expect(await contentAt(put(name, gzipSync("one "), gzipSync(""), gzipSync("two")))).toBe("one two");
  });

  it.skipIf(zlib.zstdCompressSync === undefined)(
    `is what was packed by zstd, of all frames, and of skippable ones between them${withoutZstd}`,
    async () => {
      const skippable = Uint8Array.of(0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3);
      const texts = [digits(200_000), "", "a".repeat(500_000), digits(10)];
      const frames = texts.flatMap((text, i) => [zlib.zstdCompressSync(text, i % 2 ? checked : {}), skippable]);
      for (const parts of [frames, [skippable, ...frames]])
        expect((await contentAt(put("a.jsonl.zst", ...parts))) === texts.join("")).toBe(true);
      const whole = zlib.zstdCompressSync(texts[0]!, checked);
      await refused(
        put("cut.zst", whole, whole.subarray(0, -3)),
        /cut\.zst is cut off, after \d+ bytes of its content or more; fetch it/,
      );
      await refused(put("cut2.zst", whole, whole.subarray(0, 2)), /cut2\.zst is (cut off|damaged)/);
      await refused(
        put("more.zst", whole, "something else"),
        /more\.zst is damaged as zstd, after .*: something else follows/,
      );
      // A frame whose header names dictionary 7.
      const named = Buffer.from("28b52ffd23070000000529000068656c6c6f", "hex");
      await refused(put("named.zst", named), /named\.zst was packed with a dictionary, which is not read; unpack it/);
      // zstd -D packed "lorem ipsum dolor sit amet, consectetur" with the same text, which has no number.
      const unnamed = Buffer.from("28b52ffd202735000000010056a980", "hex");
      await refused(
        put("unnamed.zst", unnamed),
        /unnamed\.zst is damaged as zstd: .*; fetch it again, or, if it was packed with a dictionary, unpack it with zstd -d -D DICTIONARY\.$/,
      );
      const wrong = whole.slice();
      wrong[wrong.length - 100]! ^= 255;
      await refused(put("wrong.zst", wrong), /wrong\.zst is damaged as zstd/);
    },
  );

  it("that is cut off or damaged is an error that says where", async () => {
    const whole = gzipSync(digits(100_000));
    await refused(
      put("cut.gz", whole.subarray(0, -9)),
      /cut\.gz is cut off, after \d+ bytes of its content or more; fetch it again/,
    );
    const wrong = whole.slice();
    wrong[whole.length >> 1]! ^= 255;
    await refused(
      put("wrong.gz", wrong),
      /wrong\.gz is damaged as gzip, after \d+ bytes of its content or more: .*; fetch it/,
    );
    const small = gzipSync("small");
    small[15]! ^= 255;
    await refused(put("small.gz", small), /small\.gz is damaged as gzip: /);
    await refused(put("page.gz", "<html>"), /page\.gz is no gzip file, as its name says: fetch it again, or rename it/);
  });

  it("packed by gzip with something else behind it is an error that says so", async () => {
    for (const text of ["short", digits(200_000)])
      for (const more of ["something else", "\0\0\0and more"])
        await refused(
          put("more.gz", gzipSync(text), more),
          /more\.gz goes on with something else behind what gzip packed(, after \d+ bytes of its content or more)?; fetch it/,
        );
    expect(await contentAt(put("padded.gz", gzipSync("a"), new Uint8Array(512)))).toBe("a");
  });

  // The first bytes that bzip2, xz, lz4 and zip write, by their programs.
  it.each([
    ["a.txt.bz2", Buffer.from("425a683931415926535900", "hex"), "bzip2", "bunzip2 -k"],
    ["b.txt", Buffer.from("425a683931415926535900", "hex"), "bzip2", "bunzip2 -k"],
    ["a.txt.Z", Buffer.from("1f9d906184018000", "hex"), "compress", "uncompress -k"],
    ["a.XZ", Buffer.from("fd377a585a000004", "hex"), "xz", "unxz -k"],
    ["a.lz4", Buffer.from("04224d186440a7", "hex"), "LZ4", "unlz4"],
    ["a.zip", Buffer.from("504b030414000000", "hex"), "zip", "unzip"],
    ["a.txt.br", Buffer.from("0b02806869", "hex"), "brotli", "brotli -d"],
  ])("in %s is refused by the name of the packing", async (name, bytes, packing, program) => {
    const words = `packed by ${packing}, which is not read, as gzip and zstd are: unpack it with ${program}`;
    await refused(put(name, bytes), new RegExp(`${name} is ${words}\\.`));
    expect((await beginningOf(join(folder, name))).problem).toBe(words);
  });

  it("begins with what is inside, and archives inside are seen", async () => {
    const text = "a".repeat(20_000);
    expect(await beginningOf(put("begin.gz", gzipSync(text)))).toEqual({
      head: Buffer.alloc(8192, "a"),
      isPacked: true,
    });
    const archive = Buffer.alloc(1024);
    archive.write("name");
    archive.write("ustar", 257);
    expect((await beginningOf(put("a.tar.gz", gzipSync(archive)))).problem).toBe(
      "packed by tar inside gzip, which is not read: unpack it",
    );
  });
});
