/** The bytes of files as one text, with a newline between two of them. Only what is asked for is read, so a text may be larger than memory. */
import { PositionalFile } from "../positional-file.ts";
import { joined, type TokenSource, tokensInMemory } from "../tokens/token-source.ts";
import type { SizedFile } from "./text-files.ts";

const mostOpen = 64;
const newline = tokensInMemory("a newline", Uint8Array.of(10));

export function bytesOfFiles(name: string, files: readonly SizedFile[]): TokenSource {
  const open = new Map<string, PositionalFile>(); // the one that was used last is the last
  const opened = (path: string) => {
    const file = open.get(path) ?? new PositionalFile(path);
    open.delete(path);
    open.set(path, file);
    if (open.size > mostOpen) {
      const [unused] = open.values();
      unused!.close();
      open.delete(unused!.path);
    }
    return file;
  };
  const text = joined(
    name,
    files.flatMap(({ path, size }, i) => [
      ...(i > 0 ? [newline] : []),
      { name: path, length: size, read: (start: number, count: number) => opened(path).read(start, count) },
    ]),
  );
  return {
    ...text,
    async close() {
      for (const file of open.values()) file.close();
      open.clear();
    },
  };
}
