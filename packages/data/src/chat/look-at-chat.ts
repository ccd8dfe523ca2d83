import { textFiles } from "../text/text-files.ts";
import type { ChatRowOptions } from "./chat-options.ts";
import { RowCutter } from "./cut-rows.ts";
import { isPrepared, openPrepared } from "./prepared-rows.ts";
import { ChatRows } from "./read-chat-rows.ts";
import { rowInMemory } from "./stored-row.ts";

/** A row as a model is to see it. */
export interface LookedRow {
  readonly tokens: number;
  /** Its text, in parts that are learned or not. */
  readonly parts: readonly { readonly text: string; readonly learned: boolean }[];
}

/**
 * The first rows of a path as `chat` reads them, and in words how it does. `most`: tokens of a row. Throws `DataError`.
 */
export async function lookAtChat(
  options: ChatRowOptions,
  { count, most = Number.POSITIVE_INFINITY }: { count: number; most?: number | undefined },
): Promise<{ rows: LookedRow[]; remarks: string[] }> {
  await using reader = await ChatRows.open(options);
  const prepared = isPrepared(options.path)
    ? openPrepared(options.path, options, reader.tokenizer.fingerprint)
    : undefined;
  const found = prepared?.training ?? readRows();
  async function* readRows() {
    const { training } = await textFiles(options.path, "rows");
    for await (const tokens of reader.read(training, most)) yield rowInMemory(tokens);
  }
  const rows: LookedRow[] = [];
  const cutter = new RowCutter();
  for await (const row of found) {
    const cut = cutter.cut(row, most);
    if (cut === undefined) continue;
    const { ids, learned } = cut.read();
    const parts: { text: string; learned: boolean }[] = [];
    for (let from = 0; from < ids.length; ) {
      let to = from + 1;
      while (to < ids.length && learned[to] === learned[from]) to++;
      const text = await reader.tokenizer.decode([...ids.subarray(from, to)], { special: true });
      parts.push({ text, learned: learned[from] === 1 });
      from = to;
    }
    rows.push({ tokens: ids.length, parts });
    if (rows.length === count) break;
  }
  prepared?.close();
  const { remarks, passedOver } = prepared?.facts ?? reader;
  return {
    rows,
    remarks: [
      ...remarks,
      ...cutter.remarks(most),
      ...[...passedOver, ...cutter.passedOver(most)].map((words) => `data: left out: ${words}`),
    ],
  };
}
