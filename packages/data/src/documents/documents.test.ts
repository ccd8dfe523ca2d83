import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { datasets } from "../datasets.ts";
import { textFiles } from "../text/text-files.ts";
import { documents } from "./documents.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-documents-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const put = (name: string, content: string | Uint8Array) => {
  mkdirSync(join(folder, name, ".."), { recursive: true });
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

async function* piecesOf(path: string, column?: string) {
  const found = await textFiles(path, "texts", column);
  yield* documents(found.training, { column: found.column! });
}

async function textsOf(path: string, column?: string): Promise<string[]> {
  const texts: string[] = [];
  let open = "";
  for await (const { text, ends } of piecesOf(path, column)) {
    open += text;
    if (!ends) continue;
    texts.push(open);
    open = "";
  }
  return texts;
}
const refused = (path: string, message: RegExp, column?: string) =>
  expect(textsOf(path, column)).rejects.toThrow(message);
const texts = ["one", "zwei\nlines", "三 🦁", ""];

describe("documents", () => {
  it("of a table are those of one column", async () => {
    await refused(put("twice.csv", "text,text\na,b\n"), /twice\.csv has two columns text; rename one of them\.$/);
  });

  it("of jsonl are the texts of a key", async () => {
    const lines = texts.map((text, id) => JSON.stringify({ id, text, other: "no" }));
    expect(await textsOf(put("a.jsonl", lines.join("\n")))).toEqual(texts);
    expect(await textsOf(put("b.jsonl", `${lines.join("\r\n")}\n\n \t\r\n`))).toEqual(texts);
    await refused(put("c.jsonl", `${lines[0]}\n{"text": 3`), /c\.jsonl, line 2 is no JSON: /);
    // As Python's json writes numbers that JSON lacks.
    const numbers = '{"text": "NaN \\" Infinity", "score": NaN, "of": [Infinity, -Infinity, {"NaN": NaN}]}';
    expect(await textsOf(put("nan.jsonl", `${numbers}\n${lines[0]}`))).toEqual(['NaN " Infinity', texts[0]]);
    expect(await textsOf(put("nan.json", `[${numbers}, ${lines[0]}]`))).toEqual(['NaN " Infinity', texts[0]]);
    for (const name of ["pretty.jsonl", "pretty.json"])
      await refused(
        put(name, JSON.stringify({ data: [{ text: "a" }] }, null, 1)),
        /line 1 begins an object that goes on in the lines below; write each object into one line, as jq/,
      );
    await refused(put("none.jsonl", '{"text": "a", "score": -NaN}'), /line 1 is no JSON: No number after minus sign/);
    await refused(
      put("d.jsonl", '{"body": "x", "id": 1}'),
      /d\.jsonl, line 1 has no text in text, only body, id; .* data\.column/,
    );
    expect(await textsOf(put("d.jsonl", '{"body": "x", "id": 1}'), "body")).toEqual(["x"]);
    await refused(
      put("e.jsonl", `${lines[0]}\n{"text": "cut \\ud83d"}`),
      /e\.jsonl, line 2 has half of a letter \(a surr/,
    );
    await refused(put("f.json", '[{"text": "\\udc00 cut"}]'), /f\.json, element 1 has half of a letter/);
  });

  it.each([
    { messages: [] },
    { id: 1, conversations: [] },
    { prompt: "a", completion: "b" },
    { instruction: "a", output: "b" },
  ])("names what reads rows with a conversation: %j", async (row) => {
    await refused(put("chat.jsonl", JSON.stringify(row)), /no text in text, only .*; read .* with data\.name=chat, or/);
  });

  it("of tsv are the cells of a column", async () => {
    expect(await textsOf(put("a.tsv", 'index\tsentence\tlabel\n0\ta "quote\t1\n1\tb\t0\n'), "sentence")).toEqual([
      'a "quote',
      "b",
    ]);
    await refused(
      put("b.tsv", "index\tlabel\n0\t1\n"),
      /b\.tsv has no column text, only index, label; name one of them/,
    );
    expect(await textsOf(put("c.tsv", "text\tlabel\na\t1\nb\nc\t0\n"))).toEqual(["a", "c"]);
    await refused(
      put("d.tsv", "text\tlabel\na\t1\nb\nc\n"),
      /d\.tsv: 2 of 3 rows have a wrong number of columns \(line 3 has 1 columns, and the first line has 2\); correct them/,
    );
  });

  it("of parquet are the texts of a column, from all groups of rows", async () => {
    const many = Array.from({ length: 3500 }, (_, i) => `text ${i}`);
    const columnData = [
      { name: "text", data: many, type: "STRING" as const },
      { name: "number", data: many.map((_, i) => i), type: "INT32" as const },
    ];
    const bytes = new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: 1500 }));
    const path = put("a.parquet", bytes);
    expect(await textsOf(path)).toEqual(many);
    await refused(path, /a\.parquet has no column body, only text, number; name the text's with data\.column/, "body");
    await refused(path, /a\.parquet, row 0 has a number in number, and no text; /, "number");
    const asBytes = {
      path: put("body.parquet", new Uint8Array(parquetWriteBuffer({ columnData: [{ name: "body", data: ["a"] }] }))),
      blockSize: 8,
    };
    const opened = datasets.text.open(asBytes, { batchSize: 1, seed: 0, rank: 0, ranks: 1 });
    await expect(opened).rejects.toThrow(/body\.parquet has no column text, only body/);
    const short = put("short.parquet", bytes);
    truncateSync(short, bytes.length - 100);
    await refused(short, /short\.parquet is no parquet file, or is cut short: .*; fetch it again/);
  });

  it("of json are those of one array, or of an object in each line", async () => {
    const rows = texts.map((text, id) => ({ id, text, tags: ["[", "]", '"'] }));
    for (const json of [
      JSON.stringify(rows),
      JSON.stringify(rows, null, 2),
      rows.map((row) => JSON.stringify(row)).join("\n"),
    ])
      expect(await textsOf(put("a.json", json))).toEqual(texts);
    expect(await textsOf(put("empty.json", " [ ] "))).toEqual([]);
    const long = Array.from({ length: 30_000 }, (_, i) => ({ text: `${i} 🦁 \\ " }`.repeat(1 + (i % 5)) }));
    expect(await textsOf(put("long.json.gz", gzipSync(JSON.stringify(long))))).toEqual(long.map(({ text }) => text));
    await refused(
      put("cut.json", '[{"text": "a"}, {"text": "b'),
      /cut\.json is cut off in element 2 of its array; fetch/,
    );
    await refused(put("more.json", '[{"text": "a"}] more'), /more\.json goes on behind the end of its array, with m/);
    await refused(put("comma.json", '[{"text": "a"},]'), /comma\.json, element 2 is no JSON: /);
    await refused(put("number.json", "[1]"), /number\.json, element 1 is a number and no object with keys/);
  });

  it("of csv are the cells of a column, with quotes; Python's csv module reads them so", async () => {
    const csv = 'id,text,label\r\n0,"hello, ""you""\nthere",1\r\n1,plain,0\r\n2,,1\r\n3,short\r\n';
    expect(await textsOf(put("a.csv", csv))).toEqual(['hello, "you"\nthere', "plain", ""]);
    expect(await textsOf(put("b.csv.gz", gzipSync(`\uFEFF${csv}`)), "id")).toEqual(["0", "1", "2"]);
    for (const [name, ends] of Object.entries({
      first: ["\r\n", "\n"],
      later: ["\n", "\r\n"],
      twice: ["\r\r\n", "\r\r\n"],
    }))
      expect(await textsOf(put(`${name}.csv`, `id,text${ends[0]}0,a${ends[1]}1,"b\r\nc"${ends[1]}`))).toEqual([
        "a",
        "b\r\nc",
      ]);
    await refused(
      put("c.csv", "id;text\n1;a\n"),
      /c\.csv has no column text, only id;text; if ";" separates its columns, write commas \(\.csv\) or tabs/,
    );
    await refused(
      put("e.tsv", "id,text\n1,a\n"),
      /e\.tsv has no column text, only id,text; if "," separates its columns/,
    );
    await refused(put("d.csv", 'text\n"a" x\n'), /d\.csv is no CSV: .*line 2.*; correct it/);
  });

  it("of a column inside another have its name behind a dot", async () => {
    const row = { id: 1, doc: { text: "inner", n: 2 }, "a.b": "dotted", list: [1] };
    const jsonl = put("nested.jsonl", JSON.stringify(row));
    expect(await textsOf(jsonl, "doc.text")).toEqual(["inner"]);
    expect(await textsOf(jsonl, "a.b")).toEqual(["dotted"]);
    await refused(jsonl, /line 1 has no text in text, only id, doc\.text, doc\.n, a\.b, list; name the text's key/);
    await refused(jsonl, /line 1 has an object in doc, with doc\.text, doc\.n, and no text/, "doc");
    await refused(jsonl, /line 1 has a list in list, and no text; remove the row, or name/, "list");
    await refused(jsonl, /line 1 has no text in constructor, only/, "constructor");
    await refused(put("null.jsonl", '{"text": null}'), /line 1 has null in text, and no text; remove the row, or name/);
    await refused(put("none.jsonl", "null"), /line 1 is null and no object with keys; remove or correct it/);
  });

  it("with very many columns are refused in a short line", async () => {
    const names = Array.from({ length: 300_000 }, (_, i) => `key${i}${"x".repeat(i === 0 ? 1000 : 0)}`);
    const files = {
      "keys.jsonl": JSON.stringify(Object.fromEntries(names.map((name) => [name, 1]))),
      "keys.tsv": `${names.join("\t")}\n`,
      "keys.csv": `${names.join(",")}\n`,
    };
    for (const [name, content] of Object.entries(files)) {
      const error = (await textsOf(put(name, content)).catch((error: unknown) => error)) as Error;
      expect(error.message).toMatch(/only key0x{56}…, key1, .*key7 and 299992 more; name/);
      expect(error.message.length).toBeLessThan(500);
    }
  });

  it("that are nested a million times deep, in a part that is not asked for, do no harm", async () => {
    const deep = `{"text": "a", "deep": ${"[".repeat(1e6)}${"]".repeat(1e6)}}`;
    for (const [name, content] of [
      ["deep.jsonl", deep],
      ["deep.json", `[${deep}]`],
    ] as const)
      expect(await textsOf(put(name, content))).toEqual(["a"]);
  });

  it("that are longer than is read at once are refused, in a time that grows with the length only", async () => {
    const letters = Buffer.alloc((128 + 4) << 20, "a"); // the limit is looked at once for each MiB
    const wrap = (before: string, after: string) => Buffer.concat([Buffer.from(before), letters, Buffer.from(after)]);
    for (const [name, content, what] of [
      ["line.jsonl", wrap('{"text": "', '"}\n'), "line 1"],
      ["line.tsv", wrap("text\n", "\n"), "line 2"],
      ["line.json", wrap('[{"text": "', '"}]'), "element 1"],
      ["line.txt", letters, "a stretch without a blank"],
    ] as const) {
      await refused(put(name, content), new RegExp(`${name}, ${what} has more than 134217728 letters, the most`));
      rmSync(join(folder, name));
    }
  });

  it("of one long line of words are read, in pieces", async () => {
    const path = put("words.txt", Buffer.alloc((128 << 20) + (2 << 20), "ab cde "));
    let [letters, pieces] = [0, 0];
    for await (const { text } of piecesOf(path)) {
      letters += text.length;
      if (pieces++ > 0) expect(text).toMatch(/^ ?\S/);
    }
    expect([letters, pieces]).toEqual([130 << 20, 2]);
    rmSync(path);
  });

  it("of a damaged parquet file are refused, also where its reader loops without end", async () => {
    const data = Array.from({ length: 500 }, (_, i) => `hello world text number ${i}`);
    const bytes = new Uint8Array(parquetWriteBuffer({ columnData: [{ name: "text", data, type: "STRING" }] }));
    bytes[16] = 187; // of the header of the first page
    const path = put("damaged.parquet", bytes);
    const timeout = AbortSignal.timeout;
    const limit = vi
      .spyOn(AbortSignal, "timeout")
      .mockImplementation((ms) => timeout.call(AbortSignal, Math.ceil(ms / 20)));
    try {
      await refused(
        path,
        /damaged\.parquet could not be read within 30 seconds: it is probably damaged; fetch it again\.$/,
      );
      expect(limit.mock.lastCall?.[0]).toBeGreaterThan(30_000);
    } finally {
      limit.mockRestore();
    }
  });

  it("of a folder are those of its files with columns, in order, or else its plain texts", async () => {
    put("mixed/2.jsonl", '{"text": "second"}');
    put("mixed/1.jsonl", '{"text": "first"}');
    put("mixed/README.md", "no text to train on");
    expect(await textsOf(join(folder, "mixed"))).toEqual(["first", "second"]);
    put("plain/b.txt", "bee\n");
    put("plain/a.txt", "ay\n");
    expect(await textsOf(join(folder, "plain"))).toEqual(["ay\n", "bee\n"]);
    await refused(join(folder, "absent"), /There is no file or folder at .*absent; check the data path/);
  });

  it("that are long come in pieces, cut where a newline is between two letters", async () => {
    const text = Array.from({ length: 900_000 }, (_, i) =>
      i % 7 === 0 ? `${i}  \n\n  ` : `line ${i} of 🦁 a long text\n`,
    ).join("");
    const path = put("long.txt", text);
    let [joined, pieces] = ["", 0];
    for await (const piece of piecesOf(path)) {
      if (pieces > 0) expect(`${joined.slice(-2)}${piece.text[0]}`).toMatch(/^\S\n\S$/);
      joined += piece.text;
      pieces++;
    }
    expect(pieces).toBeGreaterThan(1);
    expect(joined === text).toBe(true);
  });
});

const open = (path: string, more: object = {}) =>
  datasets.text.open(
    { path, tokenizer: "bytes", validationFraction: 0, ...more },
    { batchSize: 1, seed: 0, rank: 0, ranks: 1, length: 8 },
  );

it("a text of bytes may have columns too, and says what is read without one", async () => {
  const path = put("bytes.jsonl", texts.map((text) => JSON.stringify({ text: text.repeat(10) })).join("\n"));
  const joined = texts.map((text) => text.repeat(10)).join("\n");
  const columns = await open(path, { column: "text" });
  expect([columns.trainingUnits, columns.remarks]).toEqual([Buffer.byteLength(joined), []]);
  const asItIs = await open(path);
  expect(asItIs.trainingUnits).toBe(readFileSync(path).length);
  expect(asItIs.remarks).toEqual([
    `data: ${path} is read as it is, with its keys and separators; data.column: text reads its texts alone`,
  ]);
});

it("what is no text is not read as bytes: the column of parquet is, and tokens are refused", async () => {
  const data = ["one", "two", "three"];
  const parquet = new Uint8Array(parquetWriteBuffer({ columnData: [{ name: "text", data, type: "STRING" }] }));
  put("parquet/a.parquet", parquet);
  expect((await open(join(folder, "parquet"))).trainingUnits).toBe("one\ntwo\nthree".length);
  put("parquet/README.md", "a longer text about the three");
  const beside = await open(join(folder, "parquet"));
  expect([beside.trainingUnits, beside.inventory!.leftOut]).toMatchObject([
    29,
    [{ names: ["a.parquet"], why: "not read beside text" }],
  ]);
  const wrong = put("other/a.parquet", new Uint8Array(parquetWriteBuffer({ columnData: [{ name: "body", data }] })));
  await expect(open(join(folder, "other"))).rejects.toThrow(`${wrong} has no column text, only body`);
  const tokens = put("tokens/train.bin", new Uint8Array(Uint16Array.from({ length: 900 }, (_, i) => i).buffer));
  for (const path of [tokens, join(folder, "tokens")])
    await expect(open(path)).rejects.toThrow(`${path} is no text; files of tokens are read with data.name: tokens`);
  expect((await open(put("letters.bin", "these are letters all the same"))).remarks).toEqual([]);
});
