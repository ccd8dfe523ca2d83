/** The rows at a data path, as tokens: read and tokenized, or prepared already. */
import { DataError } from "../data-error.ts";
import { type Inventory, withPassedOver } from "../inventory.ts";
import type { SampleFacts } from "../samples.ts";
import { textFiles } from "../text/text-files.ts";
import type { ChatRowOptions } from "./chat-options.ts";
import { RowCutter } from "./cut-rows.ts";
import { inventoryOfPrepared, isPrepared, openPrepared } from "./prepared-rows.ts";
import { ChatRows } from "./read-chat-rows.ts";
import { fingerprintOfTokenizer } from "./row-tokenizer.ts";
import type { StoredRow } from "./stored-row.ts";

export interface OpenedRows extends Pick<SampleFacts, "prompt" | "ends"> {
  readonly training: readonly StoredRow[];
  readonly heldOut: readonly StoredRow[] | undefined; // by the names of their files
  readonly pad: number;
  readonly inventory: Inventory;
  readonly remarks: readonly string[];
  close(): void;
}

/** Tokens at which rows are cut: held-out ones, and those to train on. */
interface Lengths {
  readonly block: number;
  readonly most: number;
}

/** Throws `DataError`. */
export const openRows = (
  options: ChatRowOptions,
  lengths: Lengths,
  progress?: (words: string) => void,
): Promise<OpenedRows> =>
  isPrepared(options.path) ? preparedRows(options, lengths) : readRows(options, lengths, progress);

/** The files of rows at a path. Throws `DataError`. */
export const inventoryOfRows = async (path: string): Promise<Inventory> =>
  isPrepared(path) ? inventoryOfPrepared(path) : (await textFiles(path, "rows")).inventory;

async function readRows(
  options: ChatRowOptions,
  { block, most }: Lengths,
  progress?: (words: string) => void,
): Promise<OpenedRows> {
  const found = await textFiles(options.path, "rows");
  await using rows = await ChatRows.open(options);
  const cutter = new RowCutter();
  const training = await rows.readAll(found.training, { most, cutter }, progress);
  if (training.length === 0) throw rows.noAnswers();
  const heldOut =
    found.heldOut.length > 0 ? await rows.readAll(found.heldOut, { most: block, cutter }, progress) : undefined;
  const { text: prompt, ends } = await rows.prompt();
  return {
    training,
    heldOut,
    pad: rows.tokenizer.end?.id ?? 0,
    prompt,
    ends,
    inventory: withPassedOver(found.inventory, [...rows.passedOver, ...cutter.passedOver(block)]),
    remarks: [...rows.remarks, ...cutter.remarks(block)],
    close() {},
  };
}

async function preparedRows(options: ChatRowOptions, { block, most }: Lengths): Promise<OpenedRows> {
  const { path } = options;
  const { facts, close, ...rows } = openPrepared(path, options, await fingerprintOfTokenizer(options.tokenizer));
  const cutter = new RowCutter();
  const cut = (all: readonly StoredRow[], most: number) => all.flatMap((row) => cutter.cut(row, most) ?? []);
  try {
    const longest = facts.most ?? Number.POSITIVE_INFINITY;
    if (most > longest)
      throw new DataError(
        `${path} was prepared with rows of at most ${longest} tokens, and ${most === Number.POSITIVE_INFINITY ? "data.packing: wrapped takes whole rows" : `data.blockSize is ${block}`}; set data.blockSize to ${longest} or less, or prepare the rows anew (./terse data prepare --chat).`,
      );
    const training = cut(rows.training, most);
    if (training.length === 0)
      throw new DataError(`${path} has no row whose answer begins within ${block} tokens; set data.blockSize to more.`);
    return {
      training,
      heldOut: rows.heldOut && cut(rows.heldOut, block),
      pad: facts.pad,
      prompt: facts.prompt,
      ends: facts.ends,
      inventory: withPassedOver(inventoryOfPrepared(path), [...facts.passedOver, ...cutter.passedOver(block)]),
      remarks: [...facts.remarks, ...cutter.remarks(block)],
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}
