/** Writes rows for fine-tuning as tokens, train.rows and val.rows, which the dataset "chat" reads. */
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ChatRowOptions } from "../chat/chat-options.ts";
import { RowCutter } from "../chat/cut-rows.ts";
import {
  hashOfTemplate,
  headerBytes,
  headerOf,
  type PreparedFacts,
  readingKeys,
  rowsFile,
} from "../chat/prepared-rows.ts";
import { ChatRows } from "../chat/read-chat-rows.ts";
import { rowInMemory } from "../chat/stored-row.ts";
import { DataError, reasonOf } from "../data-error.ts";
import { type Inventory, withPassedOver } from "../inventory.ts";
import { type TextFile, textFiles } from "../text/text-files.ts";
import type { Progress } from "./fetch-source.ts";
import { checkCount, counting, makePlaceFor, writeAt } from "./written-files.ts";

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

/**
 * Writes the tokens of rows, and which of them are learned, into the folder `out`. `progress` gets the bytes read and
 * their total. Throws `DataError`, or the reason of `signal`; then no file is left.
 */
export async function prepareRows(options: PrepareRowsOptions, progress: Progress = () => {}): Promise<WrittenRows> {
  const { out, path } = options;
  const targets = [rowsFile.training, rowsFile.heldOut].map((name) => join(out, name));
  makePlaceFor(out, targets);
  const found = await textFiles(path, "rows");
  await using rows = await ChatRows.open(options);
  const cutter = new RowCutter();
  const bytes = rows.tokenizer.vocabulary <= 65536 ? 2 : 4;
  const tell = counting([...found.training, ...found.heldOut], progress);
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
      inventory: withPassedOver(found.inventory, passedOver),
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
      checkCount(count + ids.length, path);
      await writeAt(file, bytes === 2 ? Uint16Array.from(ids) : ids, headerBytes + count * bytes);
      lengths.push(ids.length);
      bits.add(learned);
      count += ids.length;
      tell(row.bytes);
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
