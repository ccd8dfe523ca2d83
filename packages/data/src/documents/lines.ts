import { chunksOf } from "./plain-text.ts";

/** A line without its end, and its number from 1. */
export interface Line {
  readonly line: string;
  readonly number: number;
  readonly bytes: number;
}

/** The lines of a file of UTF-8, without empty ones. Throws `DataError`. */
export async function* linesOf(path: string): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let [rest, number] = ["", 0];
  for await (const chunk of chunksOf(path)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) yield* one(line);
  }
  yield* one(rest + decoder.decode());

  function* one(text: string): Generator<Line> {
    number++;
    const line = text.endsWith("\r") ? text.slice(0, -1) : text;
    if (line !== "") yield { line, number, bytes: Buffer.byteLength(text) + 1 };
  }
}
