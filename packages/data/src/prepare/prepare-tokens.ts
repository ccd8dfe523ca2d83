/** Writes texts as files of tokens, train.bin and val.bin, which the dataset "tokens" reads. The texts need not fit in memory. */
import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { DataError, reasonOf } from "../data-error.ts";
import type { Tokenizer } from "../dataset.ts";
import { documentFiles } from "../documents/documents.ts";
import { headerBytes, headerOf } from "../tokens/token-file.ts";
import { textTokens } from "../tokens/tokenized-text.ts";
import type { Progress } from "./fetch-source.ts";

export interface PrepareOptions {
  readonly path: string; // of texts
  readonly out: string; // a folder
  readonly tokenizer: Tokenizer;
  readonly column: string;
  /** The share of the tokens, at the end, that goes to val.bin; 0: no val.bin. */
  readonly validationFraction: number;
}

export interface Prepared {
  readonly files: readonly { readonly path: string; readonly tokens: number; readonly bytes: number }[];
  readonly documents: number;
}

const mostTokens = 2 ** 31 - 1; // the header counts them as an i32
const copiedAtOnce = 1 << 20;

/** Throws `DataError`; then no file is left. */
export async function prepareTokens(options: PrepareOptions, progress: Progress = () => {}): Promise<Prepared> {
  const { out, validationFraction } = options;
  const bytes = options.tokenizer.vocabulary <= 65536 ? 2 : 4;
  const [train, val] = [join(out, "train.bin"), join(out, "val.bin")];
  for (const path of [train, val])
    if (existsSync(path))
      throw new DataError(`${path} is there already; remove it, or name another folder with --out.`);
  await mkdir(out, { recursive: true }).catch((error) => {
    throw new DataError(`Cannot make the folder ${out}: ${reasonOf(error)}; name another one with --out.`);
  });
  const [trainPartial, valPartial] = [`${train}.partial`, `${val}.partial`];
  try {
    const file = await open(trainPartial, "w+");
    let count: number;
    let texts: number;
    let held: number;
    try {
      ({ count, texts } = await writeAll(file, bytes, options, progress));
      held = Math.floor(count * validationFraction);
      if (held > 0) await copyEnd(file, headerBytes + (count - held) * bytes, valPartial, headerOf(held, bytes));
      await file.truncate(headerBytes + (count - held) * bytes);
      await file.write(headerOf(count - held, bytes), 0, headerBytes, 0);
    } finally {
      await file.close();
    }
    await rename(trainPartial, train);
    if (held > 0) await rename(valPartial, val);
    const written = (path: string, tokens: number) => ({ path, tokens, bytes: headerBytes + tokens * bytes });
    return { files: [written(train, count - held), ...(held > 0 ? [written(val, held)] : [])], documents: texts };
  } catch (error) {
    for (const path of [trainPartial, valPartial]) await rm(path, { force: true });
    if (error instanceof DataError) throw error;
    throw new DataError(`Cannot write tokens into ${out}: ${reasonOf(error)}; make room or the folder writable.`);
  }
}

/** Appends the tokens of all documents, with endOfText between two, after room for the header. */
async function writeAll(
  file: FileHandle,
  bytes: 2 | 4,
  { path, tokenizer, column }: PrepareOptions,
  progress: Progress,
): Promise<{ count: number; texts: number }> {
  const total = (await documentFiles(path)).reduce((sum, { size }) => sum + size, 0);
  const Tokens = bytes === 2 ? Uint16Array : Uint32Array;
  let [count, texts, read, at] = [0, 0, 0, headerBytes];
  const write = async (tokens: Iterable<number>) => {
    const encoded = Tokens.from(tokens);
    count += encoded.length;
    if (count > mostTokens)
      throw new DataError(
        `${path} has more than ${mostTokens} tokens, the most of one file; prepare parts of it into several folders.`,
      );
    const content = new Uint8Array(encoded.buffer);
    for (let done = 0; done < content.length; )
      done += (await file.write(content, done, content.length - done, at + done)).bytesWritten;
    at += content.length;
  };
  for await (const piece of textTokens(path, tokenizer, column)) {
    await write(piece.tokens);
    if (piece.ends) texts++;
    read += piece.bytes;
    progress(Math.min(read, total), total);
  }
  if (count === 0) throw new DataError(`${path} has no text; name files with text in them.`);
  return { count, texts };
}

/** Writes `header` and what `file` has from `from` on. */
async function copyEnd(file: FileHandle, from: number, path: string, header: Uint8Array): Promise<void> {
  await using target = await open(path, "w");
  await target.writeFile(header);
  const buffer = new Uint8Array(copiedAtOnce);
  for (let at = from; ; ) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return;
    await target.writeFile(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}
