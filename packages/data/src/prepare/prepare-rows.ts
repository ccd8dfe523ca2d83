/** Writes rows for fine-tuning as tokens, train.rows and val.rows, which the dataset "chat" reads. */
import { existsSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { RowCutter } from "../chat/cut-rows.ts";
import {
  hashOfTemplate,
  headerBytes,
  headerOf,
  type PreparedFacts,
  readingKeys,
  rowsFile,
} from "../chat/prepared-rows.ts";
import { type ChatRowOptions, ChatRows } from "../chat/read-chat-rows.ts";
import { rowInMemory } from "../chat/stored-row.ts";
import { DataError, reasonOf } from "../data-error.ts";
import type { Inventory } from "../inventory.ts";
import { makeFolder } from "../make-folder.ts";
import { type TextFile, textFiles } from "../text/text-files.ts";
import type { Progress } from "./fetch-source.ts";

export interface PrepareRowsOptions extends ChatRowOptions {
  readonly out: string; // a folder
  /** Tokens at which rows are cut; none if absent. */
  readonly most?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WrittenRows {
  readonly files: readonly {
    readonly path: string;
    readonly rows: number;
    readonly tokens: number;
    readonly bytes: number;
  }[];
  readonly inventory: Inventory;
  readonly remarks: readonly string[];
}

const mostTokens = 2 ** 31 - 1;

/**
 * Writes the tokens of rows, and which of them are learned, into the folder `out`. `progress` gets the bytes read and
 * their total. Throws `DataError`, or the reason of `signal`; then no file is left.
 */
export async function prepareRows(options: PrepareRowsOptions, progress: Progress = () => {}): Promise<WrittenRows> {
  const { out, path } = options;
  const targets = [rowsFile.training, rowsFile.heldOut].map((name) => join(out, name));
  for (const target of targets)
    if (existsSync(target))
      throw new DataError(`${target} is there already; remove it, or name another folder with --out.`);
  makeFolder(out);
  const found = await textFiles(path, "rows");
  await using rows = await ChatRows.open(options);
  const cutter = new RowCutter();
  const bytes = rows.tokenizer.vocabulary <= 65536 ? 2 : 4;
  const bar = { read: 0, total: [...found.training, ...found.heldOut].reduce((sum, { size }) => sum + size, 0) };
  const [train, val] = targets.map((target) => `${target}.partial`) as [string, string];
  try {
    await using training = await open(train, "w");
    await using heldOut = found.heldOut.length > 0 ? await open(val, "w") : undefined;
    const written = [{ file: training, ...(await writeTokens(training, found.training)) }];
    if (written[0]!.lengths.length === 0) throw rows.noAnswers();
    if (heldOut) written.push({ file: heldOut, ...(await writeTokens(heldOut, found.heldOut)) });
    const most = options.most ?? Number.POSITIVE_INFINITY;
    const said = {
      passedOver: [...rows.passedOver, ...cutter.passedOver(most)],
      remarks: [...rows.remarks, ...cutter.remarks(most)],
    };
    const about = new TextEncoder().encode(JSON.stringify({ ...(await factsOf(rows, options)), ...said }));
    for (const each of written) await complete(each.file, each, about);
    // The training rows last: a folder that has them is complete.
    for (const i of [...written.keys()].reverse()) await rename(`${targets[i]}.partial`, targets[i]!);
    const { passedOver, remarks } = said;
    return {
      files: written.map(({ count, lengths }, i) => ({
        path: targets[i]!,
        rows: lengths.length,
        tokens: count,
        bytes: headerBytes + count * bytes + Math.ceil(count / 8) + 4 * lengths.length + about.length,
      })),
      inventory: { ...found.inventory, ...(passedOver.length > 0 && { passedOver }) },
      remarks,
    };
  } catch (error) {
    for (const partial of [train, val]) await rm(partial, { force: true });
    if (error instanceof DataError || options.signal?.aborted) throw error;
    throw new DataError(`Cannot write rows into ${out}: ${reasonOf(error)}; make room or the folder writable.`);
  }

  /** Appends the tokens of all rows, after room for the header. */
  async function writeTokens(file: FileHandle, files: readonly TextFile[]): Promise<Tokens> {
    const [lengths, bits]: [number[], Bits] = [[], new Bits()];
    let count = 0;
    const most = options.most ?? Number.POSITIVE_INFINITY;
    for await (const row of rows.read(files, most)) {
      options.signal?.throwIfAborted();
      const cut = cutter.cut(rowInMemory(row), most)?.read();
      if (cut === undefined) continue;
      const { ids, learned } = cut;
      if (count + ids.length > mostTokens)
        throw new DataError(
          `${path} has more than ${mostTokens} tokens, the most of one file; prepare parts of it into several folders.`,
        );
      await writeAt(file, bytes === 2 ? Uint16Array.from(ids) : ids, headerBytes + count * bytes);
      lengths.push(ids.length);
      bits.add(learned);
      count += ids.length;
      bar.read += row.bytes;
      progress(Math.min(bar.read, bar.total), bar.total);
    }
    return { count, lengths, learned: bits.bytes };
  }

  async function complete(file: FileHandle, { count, lengths, learned }: Tokens, about: Uint8Array): Promise<void> {
    let at = headerBytes + count * bytes;
    for (const part of [learned, Uint32Array.from(lengths), about]) {
      await writeAt(file, part, at);
      at += part.byteLength;
    }
    await writeAt(file, headerOf(count, bytes, lengths.length, about.length), 0);
    await file.sync();
  }
}

interface Tokens {
  readonly count: number;
  readonly lengths: readonly number[];
  readonly learned: Uint8Array;
}

async function factsOf(
  rows: ChatRows,
  options: PrepareRowsOptions,
): Promise<Omit<PreparedFacts, "passedOver" | "remarks">> {
  const { most, template } = options;
  const { text: prompt, ends } = await rows.prompt();
  const given = readingKeys.flatMap((key) => (options[key] === undefined ? [] : [[key, options[key]] as const]));
  const hash = rows.template && hashOfTemplate(options);
  return {
    tokenizer: rows.tokenizer.fingerprint,
    options: Object.fromEntries(given),
    ...(hash !== undefined && { template: { hash, ...(template !== undefined && { named: template }) } }),
    ...(most !== undefined && { most }),
    pad: rows.tokenizer.end?.id ?? 0,
    prompt,
    ends,
  };
}

async function writeAt(file: FileHandle, part: Uint8Array | Uint16Array | Uint32Array, at: number): Promise<void> {
  const content = new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  for (let done = 0; done < content.length; )
    done += (await file.write(content, done, content.length - done, at + done)).bytesWritten;
}

/** Bits that grow in number, the lowest of each byte first. */
class Bits {
  #bytes = new Uint8Array(1 << 16);
  #count = 0;

  add(bits: Uint8Array): void {
    const wanted = Math.ceil((this.#count + bits.length) / 8);
    if (wanted > this.#bytes.length) {
      const larger = new Uint8Array(2 * wanted);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    for (const bit of bits) {
      this.#bytes[this.#count >> 3]! |= bit << (this.#count & 7);
      this.#count++;
    }
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, Math.ceil(this.#count / 8));
  }
}
