/**
 * The bytes of files as one text, with a newline between two of them. Files are read in parts, so the text may be
 * larger than memory. Packed files are unpacked into memory.
 */
import { contentOfFile } from "../content/content-of-file.ts";
import { DataError } from "../data-error.ts";
import { PositionalFile } from "../positional-file.ts";
import { largestInMemory } from "../tokens/largest-in-memory.ts";
import { joined, type TokenSource, tokensInMemory } from "../tokens/token-source.ts";
import type { TextFile } from "./text-files.ts";

const newline = tokensInMemory("a newline", Uint8Array.of(10));

/** The bytes of files as tokens. Throws `DataError`. */
export async function bytesOfFiles(name: string, files: readonly TextFile[]): Promise<TokenSource> {
  const texts: TokenSource[] = [];
  let room = largestInMemory();
  for (const file of files) {
    if (texts.length > 0) texts.push(newline);
    if (!file.isPacked) texts.push(bytesOfFile(file));
    else {
      const bytes = await unpacked(file, room);
      texts.push(tokensInMemory(file.path, bytes));
      room -= bytes.length;
    }
  }
  return joined(name, texts);
}

/** The file is opened when its first byte is read. */
function bytesOfFile({ path, size }: TextFile): TokenSource {
  let file: PositionalFile | undefined;
  return {
    name: path,
    length: size,
    read(start, count) {
      file ??= new PositionalFile(path);
      return file.read(start, count);
    },
    close: async () => file?.close(),
  };
}

async function unpacked({ path }: TextFile, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const { bytes } of contentOfFile(path)) {
    chunks.push(bytes);
    size += bytes.length;
    if (size > most)
      throw new DataError(
        `${path} has more than ${Math.round(most / 1e6)} MB of content, too much for memory; unpack it, or write tokens once with ./terse data prepare.`,
      );
  }
  return Buffer.concat(chunks, size);
}
