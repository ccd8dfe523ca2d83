import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { TextBatch } from "../batch.ts";
import type { Dataset } from "../dataset.ts";
import { datasets } from "../datasets.ts";
import { datasetContract } from "../testing/dataset-contract.ts";

let folder: string;
let path: string;
/** Every window of 8 bytes or more is at one place only. */
const text = Array.from({ length: 120 }, (_, i) => `${1000 + i} `).join("");
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-text-"));
  path = join(folder, "text.txt");
  writeFileSync(path, text);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const given = { batchSize: 2, seed: 5, rank: 0, ranks: 1, length: 16 };
const options = { tokenizer: "bytes", validationFraction: 0.2 };
const open = (more = {}, share = {}) => datasets.text.open({ path, ...options, ...more }, { ...given, ...share });

/** The rows of a step, as text. */
async function rowsOf(data: Dataset, side: "tokens" | "next" = "tokens"): Promise<string[]> {
  const rows: string[] = [];
  for (using batch of await data.next()) {
    const bytes = Buffer.from([...(await (batch as TextBatch)[side].toTypedArray())].map(Number));
    for (let at = 0; at < bytes.length; at += 16) rows.push(bytes.toString("latin1", at, at + 16));
  }
  return rows;
}

describe("text of bytes", () => {
  const samples = (480 / 16) | 0; // of 600 bytes, 120 are held out
  datasetContract((share) => open({}, share), { samples: samples - 1, fields: datasets.text.fields, random: true });

  it("gives no byte to two rows of an epoch, on any rank, and cuts the next epoch elsewhere", async () => {
    const world = await Promise.all([0, 1].map((rank) => open({}, { rank, ranks: 2, batchSize: 1 })));
    const epochs: number[][] = [[], []];
    for (let row = 0; row < 2 * (samples - 1); row += 2)
      for (const data of world) epochs[Math.floor(row / (samples - 1))]!.push(text.indexOf((await rowsOf(data))[0]!));
    const all = epochs.flat();
    const [first, second] = [all.slice(0, samples - 1), all.slice(samples - 1)].map((starts) =>
      starts.toSorted((a, b) => a - b),
    ) as [number[], number[]];
    expect(first).toEqual(Array.from({ length: samples - 1 }, (_, i) => 16 * i));
    expect(second).toEqual(first.map((start) => start + second[0]!));
    expect(second[0]).toBeGreaterThan(0);
    expect(second[0]).toBeLessThan(16);
    for (const data of world) await data[Symbol.asyncDispose]();
  });

  it("has the next byte of each, and holds the end out", async () => {
    const [a, b] = [await open(), await open()];
    for (let step = 0; step < 40; step++) {
      const [now, next] = [await rowsOf(a), await rowsOf(b, "next")];
      for (const [i, row] of now.entries()) {
        const start = text.indexOf(row);
        expect(next[i]).toBe(text.slice(start + 1, start + 17));
        expect(start + 17).toBeLessThanOrEqual(480);
      }
    }
    const rows: string[] = [];
    for await (using batch of a.validation({ windows: 100, sharded: false })) {
      const bytes = Buffer.from([...(await (batch as TextBatch).tokens.toTypedArray())].map(Number));
      for (let at = 0; at < bytes.length; at += 16) rows.push(bytes.toString("latin1", at, at + 16));
    }
    expect(rows.join("")).toBe(text.slice(480, 480 + 112)); // (120 − 1) / 16 rows
  });

  it("holds out the ends of 64 stretches of a long text", async () => {
    const long = join(folder, "long.txt");
    writeFileSync(long, Buffer.alloc(32 << 20).fill((32 << 20).toString(2)));
    const data = await open({ path: long, validationFraction: 1 / 16 });
    expect([data.trainingUnits, data.validationUnits]).toEqual([30 << 20, 2 << 20]);
    await data[Symbol.asyncDispose]();
  });

  it("works with the shortest possible text: one row and the byte after it", async () => {
    const short = join(folder, "short.txt");
    writeFileSync(short, "1234567890abcdefg");
    const data = await open({ path: short, validationFraction: 0 }, { batchSize: 3 });
    expect(await rowsOf(data)).toEqual(Array(3).fill("1234567890abcdef"));
    for await (const _ of data.validation({ windows: 3, sharded: false })) expect.fail("nothing is held out");
    await expect(open({ path: short, validationFraction: 0, blockSize: 17 })).rejects.toThrow(
      /short\.txt has 17 bytes to train on, but one row needs 18 \(data\.blockSize 17 and the byte after it\); give more text or a smaller block\.$/,
    );
    await expect(open({ validationFraction: 0.01 })).rejects.toThrow(
      /has 6 bytes to validate on, but one row needs 17 .*a larger data\.validationFraction \(0 for none\) or a smaller block\.$/,
    );
  });

  it("shows the beginning of the held-out text without letters that are cut", async () => {
    const cut = join(folder, "cut.txt");
    writeFileSync(cut, `${"x".repeat(100)}é${"日".repeat(33)}`);
    const data = await open({ path: cut, validationFraction: 0.5, blockSize: 8 });
    expect(data.prompt).toBe("日".repeat(7));
  });

  it("refuses the state of another split, and one of an earlier version", async () => {
    const data = await open();
    const state = data.state();
    const other = await open({ validationFraction: 0.3 });
    expect(() => other.restore(state)).toThrow(
      /text\.txt is not the data of the saved run, or was read with other options or by an earlier version of terse; use the same/,
    );
    const earlier = { step: 3, seed: 5, text: "0".repeat(64) };
    expect(() => data.restore(earlier)).toThrow(
      /^The save is of an earlier version of terse, which drew the rows of .*text\.txt in another way; finish the run with that version/,
    );
  });

  it("refuses a rank beyond the last, and a step of no batches", async () => {
    await expect(open({}, { rank: 2, ranks: 2 })).rejects.toThrow(
      "data.rank is 2, but with 2 ranks the last one is 1; set a rank from 0 to 1.",
    );
    await expect((await open()).next(0)).rejects.toThrow(
      "A step cannot have 0 batches; give 1 or more (the accumulation count).",
    );
  });
});

describe("text of a folder", () => {
  let split: string;
  const put = (name: string, content: string | Uint8Array) => writeFileSync(join(split, name), content);
  const units = async (more: object) => {
    const data = await open({ path: split, ...more });
    const found = [data.trainingUnits, data.validationUnits, data.fingerprint] as const;
    await data[Symbol.asyncDispose]();
    return found;
  };
  beforeEach(() => {
    split = mkdtempSync(join(folder, "split-"));
    put("stories-train.txt", text);
    put("stories-valid.txt", text.slice(0, 200));
    put("stories-test.txt", text.slice(0, 300));
  });

  it.each([{ tokenizer: "bytes" }, { tokenizer: "bytes", column: "text" }, { tokenizer: "gpt2" }])(
    "holds out what its names say, with %o, and tells what it reads",
    async (more) => {
      const [training, validation] = await units(more);
      if (more.tokenizer === "bytes") expect([training, validation]).toEqual([600, 200]);
      else expect(validation / training).toBeCloseTo(1 / 3, 1);
      const data = await open({ path: split, ...more });
      expect(data.inventory).toMatchObject({
        training: { count: 1, bytes: 600, names: ["stories-train.txt"] },
        heldOut: { count: 1, bytes: 200, names: ["stories-valid.txt"], split: "validation" },
        leftOut: [{ count: 1, names: ["stories-test.txt"], why: "the test split" }],
      });
      const { length: _, ...known } = { length: 0, path: split, ...options, ...more };
      expect(await datasets.text.inventory!(known)).toEqual(data.inventory);
      await data[Symbol.asyncDispose]();
    },
  );

  it("that is too short to validate on is named", async () => {
    put("stories-valid.txt", "short");
    await expect(units({})).rejects.toThrow(
      /has 5 bytes to validate on, in stories-valid\.txt, which the name says to hold out, but one row needs 17 .*; give more text, another name or a smaller block\.$/,
    );
  });

  it("is other data where other files are held out, and the same where they are packed", async () => {
    const [, , before] = await units({});
    rmSync(join(split, "stories-valid.txt"));
    const [, validation, without] = await units({});
    expect([validation, without === before]).toEqual([300, false]);
    put("stories-valid.txt.gz", gzipSync(text.slice(0, 200)));
    expect((await units({}))[2]).toBe(before);
  });

  it("of packed files has the rows of their content", async () => {
    const packed = join(folder, "packed.txt.gz");
    writeFileSync(packed, gzipSync(text));
    const [a, b] = [await open({ path: packed }), await open()];
    expect(a.fingerprint).toBe(b.fingerprint);
    for (let step = 0; step < 20; step++) expect(await rowsOf(a)).toEqual(await rowsOf(b));
    for (const data of [a, b]) await data[Symbol.asyncDispose]();
  });
});
