/** Writes texts as token files, train.bin and val.bin, which the dataset "tokens" reads. Texts may exceed memory. */
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { DataError, reasonOf } from "../data-error.ts";
import type { Tokenizer } from "../dataset.ts";
import { SkippedRows } from "../documents/table.ts";
import { type Inventory, withPassedOver } from "../inventory.ts";
import { type TextFile, textFiles } from "../text/text-files.ts";
import { headerBytes, headerOf } from "../tokens/token-file.ts";
import { textTokens } from "../tokens/tokenized-text.ts";
import type { Progress } from "./fetch-source.ts";
import { checkCount, counting, makePlaceFor, writeAt } from "./written-files.ts";

/** What `prepareTokens` reads and writes. */
export interface PrepareOptions {
  readonly path: string; // of texts
  readonly out: string; // a folder
  readonly tokenizer: Tokenizer;
  readonly column?: string | undefined; // "text" if absent
  /** The share of the tokens, at the end, that goes to val.bin where no file is held out by its name; 0: no val.bin. */
  readonly validationFraction: number;
  readonly signal?: AbortSignal | undefined;
}

/** What `prepareTokens` has written: files, the number of documents, and the files that it read. */
export interface PreparedTokens {
  readonly files: readonly { readonly path: string; readonly tokens: number; readonly bytes: number }[];
  readonly documents: number;
  readonly inventory: Inventory;
}

const copiedAtOnce = 1 << 20;

/**
 * Writes the tokens of texts to train.bin, and those of the held-out texts to val.bin, in the folder `out`: 16 bits a
 * token, or 32 for more than 65536 tokens. `progress` gets the bytes read and their total. Throws `DataError`; then no
 * file is left, also where `signal` is the reason.
 */
export async function prepareTokens(options: PrepareOptions, progress: Progress = () => {}): Promise<PreparedTokens> {
  const { out, validationFraction } = options;
  const bytes = options.tokenizer.vocabulary <= 65536 ? 2 : 4;
  const [train, val] = [join(out, "train.bin"), join(out, "val.bin")];
  makePlaceFor(out, [train, val]);
  const found = await textFiles(options.path, "texts", options.column);
  const tell = counting([...found.training, ...found.heldOut], progress);
  const passed = new SkippedRows();
  const write = (file: FileHandle, files: readonly TextFile[]) =>
    writeAll(file, files, {
      ...options,
      bytes,
      column: found.column!,
      passOver: passed.add,
      tell,
    });
  const [trainPartial, valPartial] = [`${train}.partial`, `${val}.partial`];
  try {
    await using file = await open(trainPartial, "w+");
    const written = await write(file, found.training);
    if (written.count === 0) throw new DataError(`${options.path} has no text; name files with text in them.`);
    let heldOut = 0;
    let heldTexts = 0;
    if (found.heldOut.length > 0) {
      await using heldFile = await open(valPartial, "w");
      ({ count: heldOut, texts: heldTexts } = await write(heldFile, found.heldOut));
      await heldFile.write(headerOf(heldOut, bytes), 0, headerBytes, 0);
      await heldFile.sync();
    } else {
      heldOut = Math.floor(written.count * validationFraction);
      const from = headerBytes + (written.count - heldOut) * bytes;
      if (heldOut > 0) await copyEnd(file, from, valPartial, headerOf(heldOut, bytes));
      await file.truncate(from);
    }
    const count = found.heldOut.length > 0 ? written.count : written.count - heldOut;
    await file.write(headerOf(count, bytes), 0, headerBytes, 0);
    await file.sync();
    if (heldOut > 0) await rename(valPartial, val);
    else await rm(valPartial, { force: true });
    await rename(trainPartial, train); // the last: a folder that has it is complete
    const fileOf = (path: string, tokens: number) => ({ path, tokens, bytes: headerBytes + tokens * bytes });
    const words = passed.words((file) => relative(options.path, file) || basename(file));
    return {
      files: [fileOf(train, count), ...(heldOut > 0 ? [fileOf(val, heldOut)] : [])],
      documents: written.texts + heldTexts,
      inventory: withPassedOver(found.inventory, words),
    };
  } catch (error) {
    for (const path of [trainPartial, valPartial]) await rm(path, { force: true });
    if (error instanceof DataError || options.signal?.aborted) throw error;
    throw new DataError(`Cannot write tokens into ${out}: ${reasonOf(error)}; make room or the folder writable.`);
  }
}

interface Writing {
  readonly path: string; // of all texts
  readonly tokenizer: Tokenizer;
  readonly bytes: 2 | 4; // of a token
  readonly column: string;
  readonly passOver: SkippedRows["add"];
  readonly signal?: AbortSignal | undefined;
  tell(bytes: number): void;
}

/** Appends the tokens of all documents, with endOfText between two, after room for the header. */
async function writeAll(
  file: FileHandle,
  files: readonly TextFile[],
  { path, tokenizer, bytes, tell, signal, ...options }: Writing,
): Promise<{ count: number; texts: number }> {
  const Tokens = bytes === 2 ? Uint16Array : Uint32Array;
  let [count, texts, at] = [0, 0, headerBytes];
  const write = async (tokens: Iterable<number>) => {
    const encoded = Tokens.from(tokens);
    count += encoded.length;
    checkCount(count, path);
    await writeAt(file, encoded, at);
    at += encoded.byteLength;
  };
  for await (const piece of textTokens(files, tokenizer, options)) {
    signal?.throwIfAborted();
    await write(piece.tokens);
    if (piece.ends) texts++;
    tell(piece.bytes);
  }
  return { count, texts };
}

/** Writes `header` and what `file` has from `from` on. */
async function copyEnd(file: FileHandle, from: number, path: string, header: Uint8Array): Promise<void> {
  await using target = await open(path, "w");
  await target.writeFile(header);
  const buffer = new Uint8Array(copiedAtOnce);
  for (let at = from; ; ) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return target.sync();
    await target.writeFile(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}
