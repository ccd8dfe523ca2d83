/** Parquet as pyarrow writes it (vectors.py). */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DataError } from "../data-error.ts";
import { parquetRows, parquetTexts } from "./parquet.ts";
import { exactJson } from "./read-json.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-parquet-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8")) as Record<string, string>;

async function textsOf(name: string, column = "text"): Promise<string[]> {
  const path = join(folder, `${name}.parquet`);
  writeFileSync(path, Buffer.from(vectors[name]!, "base64"));
  const texts: string[] = [];
  for await (const { text } of parquetTexts(path, { column })) texts.push(text);
  return texts;
}
const texts = ["amber", "birch", "amber"];

describe("texts of parquet", () => {
  it.each(["zstd", "snappy", "gzip", "brotli", "delta", "secondPageVersion", "largeString", "bytes"])(
    "are read from %s",
    async (name) => expect(await textsOf(name)).toEqual(texts),
  );

  it("are read from a dictionary, from inside a struct, and from no group of rows at all", async () => {
    expect(await textsOf("dictionary")).toEqual([...texts, ...texts, ...texts, ...texts]);
    expect(await textsOf("struct", "doc.text")).toEqual(texts);
    expect(await textsOf("noGroups")).toEqual([]);
  });

  it.each([
    [
      "lz4",
      "text",
      "is compressed by LZ4, which is not read here; write it again with another compression: zstd, snappy",
    ],
    ["encryptedColumn", "text", "is encrypted, which is not read here; write it again without encryption."],
    ["encryptedFooter", "text", "is encrypted, which is not read here; write it again without encryption."],
    ["struct", "text", "has no column text, only doc.text; name the text's with data.column."],
    [
      "struct",
      "doc",
      "has a struct in doc, and no text; name a column of texts in it with data.column, such as doc.text.",
    ],
    ["list", "text", "has a list in text, and no text; name a column of texts with data.column."],
    ["map", "text", "has a list in text, and no text; name a column of texts with data.column."],
    ["list", "text.a", "has no column text.a, only lists in text; name the text's with data.column."],
    ["time", "text", ", row 0 has a date in text, and no text; remove the row, or name another column"],
    ["fixedBytes", "text", ", row 0 has bytes in text, and no text; remove the row, or name another column"],
    ["null", "text", ", row 1 has null in text, and no text; remove the row, or name another column with data.column."],
    ["latin1", "text", ": a text from row 0 on is not UTF-8; write it again with texts in UTF-8."],
  ])("of %s, column %s, are refused with what the file has", async (name, column, message) => {
    const error = (await textsOf(name, column).catch((error: unknown) => error)) as Error;
    expect(error).toBeInstanceOf(DataError);
    expect(error.message.replace(join(folder, `${name}.parquet`), "")).toContain(message);
  });
});

it("rows of parquet have the numbers that Python reads: whole floats stay floats, and integers keep all digits", async () => {
  const path = join(folder, "numbers.parquet");
  writeFileSync(path, Buffer.from(vectors["numbers"]!, "base64"));
  const rows: unknown[] = [];
  for await (const { value } of parquetRows(path, ["messages"])) rows.push((value as { messages: unknown }).messages);
  expect(rows).toEqual(exactJson(vectors["numbersAsJson"]!));
});
