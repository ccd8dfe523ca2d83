/** The bytes of files as one text, with a newline between two of them. Only what is asked for is read, so a text may be larger than memory. */
import type { SizedFile } from "../files-at.ts";
import { PositionalFile } from "../positional-file.ts";
import { joined, type TokenSource, tokensInMemory } from "../tokens/token-source.ts";

const newline = tokensInMemory("a newline", Uint8Array.of(10));

export function bytesOfFiles(name: string, files: readonly SizedFile[]): TokenSource {
  return joined(
    name,
    files.flatMap(({ path, size }, i) => [...(i > 0 ? [newline] : []), bytesOfFile(path, size)]),
  );
}

/** The file is opened when its first byte is read. */
function bytesOfFile(path: string, size: number): TokenSource {
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
