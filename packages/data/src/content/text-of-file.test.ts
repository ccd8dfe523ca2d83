import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DataError } from "../data-error.ts";
import { firstWrongUtf8, noTextBecause } from "./encoding.ts";
import { textOfFile } from "./text-of-file.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-letters-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const put = (content: string | Uint8Array) => {
  const path = join(folder, `${files++}.txt`);
  writeFileSync(path, content);
  return path;
};
async function textAt(path: string): Promise<string> {
  let text = "";
  for await (const chunk of textOfFile(path)) text += chunk.text;
  return text;
}
async function refused(content: Uint8Array, message: string): Promise<void> {
  const path = put(content);
  const error = await textAt(path).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(DataError);
  expect((error as Error).message.replace(path, "FILE")).toBe(message);
}
const utf16 = (text: string) => Buffer.from(`\uFEFF${text}`, "utf16le");
const swapped = (text: string) => utf16(text).swap16();
const latin1 = (text: string) => Buffer.from(text, "latin1");

const text = "café, naïve, über 三 🦁 \uFFFD\n";

describe("the letters of a file", () => {
  it("are UTF-8, and UTF-16 in both orders of bytes; a byte order mark is none of them", async () => {
    for (const content of [text, `\uFEFF${text}`, utf16(text), swapped(text), gzipSync(text)])
      expect(await textAt(put(content))).toBe(text);
    expect(await textAt(put(`a\uFEFFb`))).toBe("a\uFEFFb");
  });

  it("are whole at the edges of what is read at once", async () => {
    for (const letter of ["é", "三", "🦁"])
      for (let before = 0; before < 4; before++) {
        const long = `${"a".repeat((1 << 20) - before)}${letter}b`;
        for (const content of [long, utf16(long), swapped(long)])
          expect((await textAt(put(content))) === long, `${letter} after ${before}`).toBe(true);
      }
  });

  it("are never replaced in silence", async () => {
    const convert =
      "; convert it from its own encoding (of Latin-1: iconv -f LATIN1 -t UTF-8), or remove it from the data path.";
    await refused(latin1("one\ntwo caf\u00e9\n"), `FILE is not UTF-8: byte 11 (line 2) is 0xE9${convert}`);
    await refused(Buffer.from([0x61, 0xc0, 0x80]), `FILE is not UTF-8: byte 1 (line 1) is 0xC0${convert}`);
    await refused(Buffer.from([0xed, 0xa0, 0x80, 0x61]), `FILE is not UTF-8: byte 0 (line 1) is 0xED${convert}`);
    await refused(
      Buffer.concat([Buffer.from(`\uFEFF${"\uFFFD三\n".repeat(300_000)}`), latin1("\u00fc!")]),
      `FILE is not UTF-8: byte 2100003 (line 300001) is 0xFC${convert}`,
    );
    await refused(
      Buffer.from("🦁").subarray(0, 3),
      "FILE is cut off in the middle of a letter, at byte 0 (line 1); fetch it again.",
    );
    await refused(
      utf16("ab").subarray(0, -1),
      "FILE is not UTF-16LE: at its end half a letter is missing; fetch it again.",
    );
    await refused(
      Buffer.concat([utf16("a\uD800"), utf16("b").subarray(2)]),
      "FILE is not UTF-16LE: between byte 2 and byte 8 half a letter is missing; fetch it again.",
    );
  });

  it("are not looked for where there is none", async () => {
    await refused(Buffer.from("a\0b"), "FILE is no text, but has zero bytes.");
    await refused(
      Buffer.from("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"),
      "FILE is a pointer of Git LFS in place of the file: git lfs pull fetches it.",
    );
    for (const [order, content] of [
      ["LE", utf16("hello there").subarray(2)],
      ["BE", swapped("hello there").subarray(2)],
    ] as const)
      await refused(
        content,
        `FILE is UTF-16 without a byte order mark, which is not read as text: convert it with iconv -f UTF-16${order} -t UTF-8.`,
      );
    expect(noTextBecause(Buffer.from("%PDF-1.7\n1 0 obj"))).toMatch(/^a PDF.*pdftotext/);
    expect(noTextBecause(Buffer.from("%!PS-Adobe-3.0\n"))).toMatch(/^PostScript/);
    expect(noTextBecause(Buffer.from("{\\rtf1\\ansi"))).toMatch(/^RTF/);
    expect(noTextBecause(Buffer.from("ARROW1\0\0"))).toMatch(/^an Arrow file.*to_parquet/);
    expect(noTextBecause(Buffer.from("ffffffff10010000", "hex"))).toMatch(/^an Arrow file/);
    expect(noTextBecause(Buffer.from("PAR1\x15\0"))).toMatch(/^a parquet file by its content/);
    expect(noTextBecause(Buffer.from("%PDF is how a PDF begins"))).toBeUndefined();
    expect(noTextBecause(Buffer.from("fffe000061000000", "hex"))).toMatch(/^UTF-32/);
    expect(await textAt(put(`${"a".repeat(9000)}\0`))).toBe(`${"a".repeat(9000)}\0`); // far behind the beginning
  });
});

it("the first byte that is no UTF-8 is where a strict decoder of its own fails", () => {
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const isWhole = (bytes: Uint8Array) => {
    try {
      strict.decode(bytes);
      return true;
    } catch {
      return false;
    }
  };
  const good = Buffer.from("aé三🦁\uFFFD");
  for (let at = 0; at < good.length; at++)
    for (const wrong of [0x80, 0xc3, 0xe2, 0xf0, 0xff]) {
      const bytes = Buffer.from(good);
      bytes[at] = wrong;
      const first = firstWrongUtf8(bytes);
      expect(isWhole(bytes.subarray(0, first)), `${wrong} at ${at}`).toBe(true);
      if (first === bytes.length) continue;
      for (let end = first + 1; end <= Math.min(first + 4, bytes.length); end++)
        expect(isWhole(bytes.subarray(first, end))).toBe(false);
    }
});
