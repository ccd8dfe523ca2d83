import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encode } from "gpt-tokenizer/encoding/gpt2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TextBatch } from "../batch.ts";
import { datasets } from "../datasets.ts";
import { datasetContract } from "../testing/dataset-contract.ts";
import { headerBytes, headerOf } from "./token-file.ts";

let folder: string;
const given = { batchSize: 2, seed: 0, rank: 0, ranks: 1, length: 16 };
const tokens = { vocabulary: 50257, validationFraction: 0.1 };

/** Numbers that differ at every place: 0, 7, 14 … */
const ids = (count: number, first = 0) => Uint16Array.from({ length: count }, (_, i) => ((first + i) * 7) % 50000);
const bytesOf = (array: Uint16Array | Uint32Array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-tokens-"));
  const put = (name: string, ...parts: Uint8Array[]) => {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), Buffer.concat(parts));
  };
  put("nano/train.bin", bytesOf(ids(500)));
  put("nano/val.bin", bytesOf(ids(200, 500)));
  put("shards/fineweb_train_000001.bin", headerOf(300, 2), bytesOf(ids(300)));
  put("shards/fineweb_train_000002.bin", headerOf(210, 2), bytesOf(ids(210, 300)));
  put("shards/fineweb_val_000000.bin", headerOf(200, 2), bytesOf(ids(200, 600)));
  put("large.bin", headerOf(100, 4), bytesOf(Uint32Array.from({ length: 100 }, (_, i) => 100_000 + i)));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const open = (path: string, options = {}, more = {}) =>
  datasets.tokens.open({ ...tokens, path: join(folder, path), ...options }, { ...given, ...more });

describe("nanoGPT's train.bin and val.bin", () => {
  datasetContract((more) => open("nano", {}, more), {
    samples: Math.floor(500 / 16) - 1,
    random: true,
    fields: datasets.tokens.fields,
  });

  it("are u16 tokens, and the tokens after them", async () => {
    const data = await open("nano");
    expect([data.unit, data.trainingUnits, data.validationUnits]).toEqual(["token", 500, 200]);
    const [batch] = await data.next();
    const { tokens: rows, next } = batch as TextBatch;
    const [now, then] = [[...(await rows.toTypedArray())].map(Number), [...(await next.toTypedArray())].map(Number)];
    expect(then.slice(0, 15)).toEqual(now.slice(1, 16));
    for (let row = 0; row < 2; row++) {
      const first = now[row * 16]!;
      expect((first / 7) % 16).toBe(0); // a row begins at a multiple of its length
      expect(now.slice(row * 16, row * 16 + 16)).toEqual(Array.from({ length: 16 }, (_, i) => first + 7 * i));
    }
    await data[Symbol.asyncDispose]();
  });
});

describe("FineWeb's shards", () => {
  datasetContract((more) => open("shards", {}, more), {
    samples: Math.floor(300 / 16) - 1 + Math.floor(210 / 16) - 1,
    random: true,
    fields: datasets.tokens.fields,
  });

  it("have the header of llm.c: 256 words, of which three count", () => {
    const words = new DataView(headerOf(5, 2).buffer);
    expect([0, 4, 8, 12].map((at) => words.getInt32(at, true))).toEqual([20240520, 1, 5, 0]);
    expect(words.byteLength).toBe(headerBytes);
  });

  it("with u32 tokens are read too; without a held-out file the end is held out", async () => {
    const data = await open("large.bin", { vocabulary: 200_000, validationFraction: 0.4 });
    expect([data.trainingUnits, data.validationUnits]).toEqual([60, 40]);
    for await (using batch of data.validation({ windows: 2, sharded: false }))
      expect(Number((await (batch as TextBatch).tokens.toTypedArray())[0])).toBe(100_060);
    await data[Symbol.asyncDispose]();
  });

  it("that are cut short, damaged, or of another version are refused in one line", async () => {
    const broken = join(folder, "broken.bin");
    const large = { vocabulary: 128_256 };
    const refused = (message: RegExp, options = {}) => expect(open("broken.bin", options)).rejects.toThrow(message);
    writeFileSync(broken, readFileSync(join(folder, "shards/fineweb_train_000001.bin")));
    truncateSync(broken, 1200);
    await refused(/broken\.bin has 1200 bytes, and its header says 300 tokens, 1624 bytes: it is cut short or damaged/);
    const header = new Int32Array(headerOf(-1, 2).buffer);
    writeFileSync(broken, bytesOf(new Uint32Array(header.buffer)));
    await refused(/its header says -1 tokens/);
    header[1] = 9;
    writeFileSync(broken, bytesOf(new Uint32Array(header.buffer)));
    await refused(/has version 9 of the header 20240520, and only 1 is known/);
    writeFileSync(broken, "odd");
    await refused(/has 3 bytes, which is no whole number of 16-bit tokens/);
    writeFileSync(broken, bytesOf(new Uint32Array(ids(600))));
    await refused(/broken\.bin has a zero in every second place, as tokens of 32 or 64 bits have, and is read as 16/);
    writeFileSync(broken, bytesOf(Uint32Array.from({ length: 600 }, (_, i) => (7919 * (i + 1)) % 128_256)));
    await refused(/broken\.bin has a number below 8 in every second place, .* behind the header 20240801/, large);
    writeFileSync(broken, "<html>\n".repeat(200));
    await refused(/broken\.bin is text, and no tokens: \.\/terse data prepare writes them, or fetch it again\.$/);
    writeFileSync(broken, "");
    appendFileSync(broken, bytesOf(ids(10)));
    await refused(/has 9 tokens to train on, but one row needs 17/);
    await expect(open("absent")).rejects.toThrow(/There is no file or folder at .*absent; check the data path/);
  });

  it("with tokens beyond the vocabulary are refused with file and place", async () => {
    await expect(open("nano", { vocabulary: 300 })).rejects.toThrow(
      /train\.bin: token 43 is 301, and the vocabulary has 300 tokens; name the tokenizer that wrote the file/,
    );
    const late = new Uint16Array(70_000);
    late[69_980] = 300;
    writeFileSync(join(folder, "late.bin"), bytesOf(late));
    const data = await open("late.bin", { vocabulary: 300, validationFraction: 0 }, { batchSize: 5000 });
    await expect(data.next()).rejects.toThrow(/late\.bin: token 69980 is 300, and the vocabulary has 300 tokens/);
    await data[Symbol.asyncDispose]();
    await expect(open("nano", { vocabulary: 300, tokenizer: "gpt2" })).rejects.toThrow(
      "data.tokenizer gpt2 has 50257 tokens, and data.vocabulary is 300; set data.vocabulary to 50257.",
    );
  });
});

describe("a folder of tokens", () => {
  const put = (folder: string, names: string[]) => {
    mkdirSync(folder);
    for (const [i, name] of names.entries()) writeFileSync(join(folder, name), bytesOf(ids(100 + i)));
  };
  const lengths = async (path: string) => {
    const data = await open(path);
    await data[Symbol.asyncDispose]();
    return [data.trainingUnits, data.validationUnits];
  };

  it("holds out what its names say, as whole words, and says what it leaves out", async () => {
    put(join(folder, "splits"), ["interval.bin", "notes.txt", "owt_TRAIN.BIN", "owt-valid.bin", "test.bin"]);
    const path = join(folder, "splits");
    expect(await lengths("splits")).toEqual([202, 103]);
    const data = await open("splits");
    expect(data.inventory).toEqual({
      training: { count: 2, bytes: 404, names: ["interval.bin", "owt_TRAIN.BIN"], endings: [".bin", ".BIN"] },
      heldOut: { count: 1, bytes: 206, names: ["owt-valid.bin"], endings: [".bin"], split: "validation" },
      leftOut: [
        { count: 1, bytes: 202, names: ["notes.txt"], endings: [".txt"], why: "no .bin file" },
        { count: 1, bytes: 208, names: ["test.bin"], endings: [".bin"], why: "the test split" },
      ],
    });
    expect(await datasets.tokens.inventory!({ path })).toEqual(data.inventory);
    await data[Symbol.asyncDispose]();
    rmSync(join(path, "owt-valid.bin"));
    expect(await lengths("splits")).toEqual([202, 104]);
  });

  it("or a file that is packed, or of NumPy, is refused as what it is", async () => {
    put(join(folder, "packed"), ["train.bin.gz", "notes.gz"]);
    const words = "packed by gzip, and tokens are read where they are";
    await expect(open("packed")).rejects.toThrow(`packed has no .bin file, and train.bin.gz is ${words}: unpack it`);
    await expect(open("packed/train.bin.gz")).rejects.toThrow(`train.bin.gz is ${words}; unpack it with gunzip -k.`);
    const npy = Buffer.concat([Buffer.from("\x93NUMPY\x01\x00", "latin1"), bytesOf(ids(600))]);
    writeFileSync(join(folder, "a.npy"), npy);
    await expect(open("a.npy")).rejects.toThrow(
      /a\.npy is a file of NumPy, whose header is no tokens; write its numbers alone/,
    );
    put(join(folder, "beside"), ["a.bin", "train.bin.zst"]);
    const data = await open("beside", { validationFraction: 0 });
    expect(data.inventory!.leftOut).toMatchObject([
      { names: ["train.bin.zst"], why: expect.stringMatching(/^packed by zstd/) },
    ]);
    await data[Symbol.asyncDispose]();
  });

  it("of held-out files only is refused", async () => {
    put(join(folder, "only"), ["val.bin", "test.bin"]);
    await expect(open("only")).rejects.toThrow(/only has only held-out files \(val\.bin is one by its name\); add the/);
  });
});

describe("text with GPT-2's tokens", () => {
  const words = Array.from({ length: 200 }, (_, i) => `line ${i} of a text, ${i * i}\n`).join("");
  const count = encode(words).length;
  const text = () => {
    const path = join(folder, "text.txt");
    writeFileSync(path, words);
    return path;
  };
  const options = { tokenizer: "gpt2", column: "text", validationFraction: 0.2, blockSize: 64 };
  datasetContract((more) => datasets.text.open({ ...options, path: text() }, { ...given, ...more }), {
    samples: Math.floor((count - Math.floor(count * 0.2)) / 64) - 1,
    random: true,
    fields: datasets.text.fields,
  });

  it("decodes to the text, and names its beginning", async () => {
    const path = text();
    const data = await datasets.text.open({ ...options, path }, given);
    const tokenizer = (await datasets.text.tokenizer!(options))!;
    expect(readFileSync(path, "utf8")).toContain(data.prompt!);
    const { tokens: rows } = (await data.next())[0] as TextBatch;
    const all = [...(await rows.toTypedArray())].map(Number);
    expect(readFileSync(path, "utf8")).toContain(await tokenizer.decode(all.slice(0, 64)));
  });

  it("is refused where its files have no text", async () => {
    const path = join(folder, "blank.jsonl");
    writeFileSync(path, "\n\n");
    await expect(datasets.text.open({ ...options, path }, given)).rejects.toThrow(/has 0 tokens to train on/);
  });

  it("needs a path", async () => {
    await expect(datasets.text.open(options, given)).rejects.toThrow(
      /data\.tokenizer is gpt2, and data\.path names no text/,
    );
  });
});

const shakespeare = new URL("../../../../../shared/data/tinyshakespeare.txt", import.meta.url).pathname;
const absent = existsSync(shakespeare) ? "" : ` (skipped: no text at ${shakespeare})`;
it.skipIf(absent)(`tinyshakespeare has the 338,025 tokens that nanoGPT's page counts${absent}`, async () => {
  const data = await datasets.text.open(
    { path: shakespeare, tokenizer: "gpt2", column: "text", validationFraction: 0.1 },
    given,
  );
  expect(data.trainingUnits + data.validationUnits).toBe(338_025);
});
