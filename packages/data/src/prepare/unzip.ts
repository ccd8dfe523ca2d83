/**
 * Unpacks one folder of a zip archive; not every machine has a program for that. PKWARE's APPNOTE.TXT, sections 4.3.7,
 * 4.3.12 and 4.3.16.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { crc32, inflateRawSync } from "node:zlib";

const [endOfDirectory, entryInDirectory] = [0x06054b50, 0x02014b50];
const [stored, deflated] = [0, 8];

/** Unpacks `folder` of a zip archive. Throws an Error that says what is wrong with the archive. */
export async function unzip(path: string, folder: string, into: string): Promise<void> {
  const zip = await readFile(path);
  const end = zip.lastIndexOf(Buffer.from(Uint32Array.of(endOfDirectory).buffer));
  if (end < 0) throw new Error("it has no directory of a zip archive");
  const count = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  for (let i = 0; i < count; i++) {
    if (zip.readUInt32LE(at) !== entryInDirectory) throw new Error("its directory is damaged");
    const [method, crc, packed] = [zip.readUInt16LE(at + 10), zip.readUInt32LE(at + 16), zip.readUInt32LE(at + 20)];
    const [nameBytes, extra, comment] = [28, 30, 32].map((field) => zip.readUInt16LE(at + field)) as [
      number,
      number,
      number,
    ];
    const name = zip.toString("utf8", at + 46, at + 46 + nameBytes);
    const local = zip.readUInt32LE(at + 42);
    at += 46 + nameBytes + extra + comment;
    if (!name.startsWith(`${folder}/`) || name.endsWith("/")) continue;
    if (name.split(/[/\\]/).includes("..")) throw new Error(`it has a file outside of its folder, ${name}`);
    if (method !== stored && method !== deflated) throw new Error(`${name} is packed by method ${method}`);
    const begin = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const content = zip.subarray(begin, begin + packed);
    const bytes = method === stored ? content : inflateRawSync(content);
    if (crc32(bytes) !== crc) throw new Error(`${name} is damaged`);
    await mkdir(dirname(join(into, name)), { recursive: true });
    await writeFile(join(into, name), bytes);
  }
}
