/**
 * Rows that are tokens already, which `./terse data prepare --chat` writes: train.rows, and val.rows where files are
 * held out by their names. Such a file is one of safetensors, with these tensors in this order:
 *
 *   tokens   (N)       u16 or u32   all rows, one after the other
 *   learned  (⌈N/8⌉)   u8           a bit for each token, the lowest first: 1 where it is learned
 *   lengths  (R)       u32          tokens of each row
 *   about    (B)       u8           JSON, `PreparedFacts`: how the rows were read
 *
 * A row is read when a batch has it, so that the data may be larger than memory.
 */
import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "../data-error.ts";
import { fileGroup, type Inventory } from "../inventory.ts";
import { PositionalFile } from "../positional-file.ts";
import type { ChatRowOptions } from "./chat-options.ts";
import { templateIfAny } from "./chat-template.ts";
import { type RowSource, StoredRow } from "./stored-row.ts";

/** The keys of a recipe that say how rows become tokens. */
export const readingKeys = [
  ...["messages", "prompt", "completion", "instruction", "input", "output"],
  ...["loss", "date", "endOfText"],
] as const;

export interface PreparedFacts {
  readonly tokenizer: string; // SHA-256 of its tokenizer.json
  readonly options: Readonly<Record<string, string>>; // of `readingKeys`
  /** The chat template: as data.template named it, and the SHA-256 of its text. Absent where rows have none. */
  readonly template?: { readonly named?: string; readonly hash: string };
  readonly most?: number; // tokens, at which longer rows were cut
  readonly pad: number;
  readonly prompt?: string | undefined;
  readonly ends?: readonly (readonly number[])[] | undefined;
  readonly passedOver: readonly string[];
  readonly remarks: readonly string[];
}

export const rowsFile = { training: "train.rows", heldOut: "val.rows" } as const;
export const headerBytes = 1024;
const format = "terse-rows-1";

/** The beginning of a file with `count` tokens of so many bytes each. */
export function headerOf(count: number, bytes: 2 | 4, lengths: number, about: number): Uint8Array {
  let at = 0;
  const tensor = (dtype: string, length: number, bytesEach: number) => {
    const from = at;
    at += length * bytesEach;
    return { dtype, shape: [length], data_offsets: [from, at] };
  };
  const header = {
    __metadata__: { format },
    tokens: tensor(bytes === 2 ? "U16" : "U32", count, bytes),
    learned: tensor("U8", Math.ceil(count / 8), 1),
    lengths: tensor("U32", lengths, 4),
    about: tensor("U8", about, 1),
  };
  const content = new Uint8Array(headerBytes).fill(0x20);
  new DataView(content.buffer).setBigUint64(0, BigInt(headerBytes - 8), true);
  content.set(new TextEncoder().encode(JSON.stringify(header)), 8);
  return content;
}

/** Whether rows are prepared at a path: a folder with train.rows, or such a file. */
export const isPrepared = (path: string): boolean =>
  path.endsWith(".rows") || (!!statSync(path, { throwIfNoEntry: false })?.isDirectory() && hasRows(path));

const hasRows = (folder: string) => existsSync(join(folder, rowsFile.training));

/** The files of prepared rows at a path. */
function filesAt(path: string): { training: string; heldOut: string | undefined } {
  if (path.endsWith(".rows")) return { training: path, heldOut: undefined };
  const heldOut = join(path, rowsFile.heldOut);
  return { training: join(path, rowsFile.training), heldOut: existsSync(heldOut) ? heldOut : undefined };
}

export function inventoryOfPrepared(path: string): Inventory {
  const { training, heldOut } = filesAt(path);
  const group = (file: string) => fileGroup(path, [{ path: file, size: statSync(file).size }]);
  return {
    training: group(training),
    ...(heldOut !== undefined && { heldOut: { ...group(heldOut), split: "validation" as const } }),
    leftOut: [],
  };
}

interface PreparedRows {
  readonly facts: PreparedFacts;
  readonly training: readonly StoredRow[];
  readonly heldOut: readonly StoredRow[] | undefined;
  close(): void;
}

/** Opens the rows at a path, which were read as `options` say. Throws `DataError`. */
export function openPrepared(path: string, options: ChatRowOptions, tokenizer: string): PreparedRows {
  const at = filesAt(path);
  const files: PositionalFile[] = [];
  const open = (each: string) => {
    const file = new PositionalFile(each);
    files.push(file);
    const found = rowsIn(file);
    checkAsked(found.facts, options, tokenizer, each);
    return found;
  };
  const close = () => {
    for (const file of files) file.close();
  };
  try {
    const { facts, rows } = open(at.training);
    return { facts, training: rows, heldOut: at.heldOut === undefined ? undefined : open(at.heldOut).rows, close };
  } catch (error) {
    close();
    throw error;
  }
}

/** The SHA-256 of the chat template; undefined where there is none. */
export function hashOfTemplate({ tokenizer, template }: ChatRowOptions): string | undefined {
  const text = templateIfAny(tokenizer, template);
  return text === undefined ? undefined : createHash("sha256").update(text).digest("hex");
}

/** Throws `DataError` where a recipe asks for rows that were read in another way. */
function checkAsked(facts: PreparedFacts, options: ChatRowOptions, tokenizer: string, path: string): void {
  const anew = "or prepare the rows anew (./terse data prepare --chat)";
  for (const key of readingKeys) {
    const [given, was] = [options[key], facts.options[key]];
    if (given === was) continue;
    const remedy = was === undefined ? `leave data.${key} out` : `set data.${key} to ${was}`;
    throw new DataError(
      `${path} was prepared ${was === undefined ? `without data.${key}` : `with data.${key} ${was}`}, and the recipe ${given === undefined ? "does not give it" : `has ${given}`}; ${remedy}, ${anew}.`,
    );
  }
  const { template } = facts;
  if (template && hashOfTemplate(options) !== template.hash)
    throw new DataError(
      `${path} was prepared with another chat template than ${options.template ?? "that of the tokenizer's folder"}, or it has changed since; set data.template to ${template.named ?? "nothing"}, ${anew}.`,
    );
  if (facts.tokenizer !== tokenizer)
    throw new DataError(
      `${path} was prepared by another tokenizer than data.tokenizer, ${options.tokenizer}; name that one, ${anew}.`,
    );
}

function rowsIn(file: PositionalFile): { facts: PreparedFacts; rows: StoredRow[] } {
  const damaged = (why: string) =>
    new DataError(`${file.path} is no file of prepared rows, or is damaged: ${why}; prepare the rows anew.`);
  const { tokens, learned, lengths, about } = tensorsIn(file, damaged);
  const bytes = tokens.dtype === "U16" ? 2 : 4;
  const Tokens = bytes === 2 ? Uint16Array : Uint32Array;
  const bits = file.read(learned.from, learned.length);
  const isLearned = (at: number) => (bits[at >> 3]! >> (at & 7)) & 1; // N < 2³¹
  const source: RowSource = {
    read(from, to) {
      const stored = new Tokens(file.read(tokens.from + from * bytes, (to - from) * bytes).buffer);
      const learned = new Uint8Array(to - from); // in a loop: Uint8Array.from takes twenty times as long
      for (let i = 0; i < learned.length; i++) learned[i] = isLearned(from + i);
      return { ids: new Uint32Array(stored), learned };
    },
    learned(from, to) {
      let sum = 0;
      for (let at = from; at < to; at++) sum += isLearned(at);
      return sum;
    },
  };
  let end = 0;
  const rows: StoredRow[] = [];
  for (const length of new Uint32Array(file.read(lengths.from, 4 * lengths.length).buffer)) {
    rows.push(new StoredRow(source, end, length));
    end += length;
  }
  if (end !== tokens.length) throw damaged(`its rows have ${end} tokens, and it has ${tokens.length}`);
  try {
    return { facts: JSON.parse(Buffer.from(file.read(about.from, about.length)).toString("utf8")), rows };
  } catch (error) {
    throw damaged((error as Error).message);
  }
}

interface Place {
  readonly dtype: string;
  readonly length: number;
  readonly from: number; // in the file
}

const names = ["tokens", "learned", "lengths", "about"] as const;

/** Where its tensors are. Their sizes are those that `headerOf` gives to as many tokens and rows, and end the file. */
function tensorsIn(file: PositionalFile, damaged: (why: string) => DataError): Record<(typeof names)[number], Place> {
  if (file.size < headerBytes) throw damaged(`it has ${file.size} bytes`);
  const head = file.read(0, headerBytes);
  let header: Record<string, { dtype?: string; shape?: number[]; data_offsets?: number[] }>;
  try {
    header = JSON.parse(Buffer.from(head.subarray(8)).toString("utf8"));
  } catch {
    throw damaged("it does not begin with a header");
  }
  const lengthOf = (name: string) => Number(header[name]?.shape?.[0]);
  const [count, rows, about] = [lengthOf("tokens"), lengthOf("lengths"), lengthOf("about")] as [number, number, number];
  const bytes = header["tokens"]?.dtype === "U16" ? 2 : 4;
  const counts = [count, rows, about];
  const isRight =
    counts.every((each) => Number.isSafeInteger(each) && each >= 0 && each < 2 ** 31) &&
    Buffer.from(headerOf(count, bytes, rows, about)).equals(head);
  if (!isRight) throw damaged("its header is another one");
  const wanted = headerBytes + header["about"]!.data_offsets![1]!;
  if (file.size !== wanted) throw damaged(`it has ${file.size} bytes, and its header says ${wanted}`);
  const places = names.map((name) => {
    const {
      dtype,
      shape,
      data_offsets: at,
    } = header[name] as { dtype: string; shape: [number]; data_offsets: [number] };
    return [name, { dtype, length: shape[0], from: headerBytes + at[0] }] as const;
  });
  return Object.fromEntries(places) as Record<(typeof names)[number], Place>;
}
