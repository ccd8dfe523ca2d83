import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { MaskedTextBatch } from "../batch.ts";
import { datasets } from "../datasets.ts";
import { RandomNumbers } from "../random.ts";
import { datasetContract, rowsOf } from "../testing/dataset-contract.ts";
import { typescriptDeclarations } from "../text/typescript-declarations.ts";
import { headerOf } from "../tokens/token-file.ts";
import { maskTokens, notPredicted } from "./masking.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-masked-"));
  writeFileSync(
    join(folder, "text.txt"),
    Array.from({ length: 130 }, (_, i) => `sentence ${i}. `)
      .join("")
      .slice(0, 1500),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const entry = datasets["masked-text"];
const options = { tokenizer: "bytes", column: "text", maskFraction: 0.15, validationFraction: 0.2 };
const open = (given: object, more = {}) =>
  entry.open(
    { ...options, path: join(folder, "text.txt"), ...more },
    { batchSize: 2, seed: 0, rank: 0, ranks: 1, length: 43, ...given },
  );

describe("masked text", () => {
  datasetContract(open, { samples: 30, fields: entry.fields, random: true });

  it("knows the vocabulary with [CLS], [SEP], [MASK] and [PAD] before the text is opened", () => {
    expect(entry.facts(options)).toEqual({ vocabulary: 260, length: undefined });
  });

  it("gives two sentences with their segments, and labels of what was masked", async () => {
    const data = await open({ batchSize: 200 });
    const batch = (await data.next())[0] as MaskedTextBatch;
    const numbers = async (name: "tokens" | "segments" | "mask" | "labels" | "nextSentence") =>
      Array.from(await batch[name].toTypedArray(), Number);
    const [tokens, segments, mask, labels, next] = await Promise.all(
      (["tokens", "segments", "mask", "labels", "nextSentence"] as const).map(numbers),
    );
    const T = 43;
    const text = Array.from({ length: 130 }, (_, i) => `sentence ${i}. `)
      .join("")
      .slice(0, 1200);
    let follow = 0;
    for (let row = 0; row < 200; row++) {
      const of = (all: number[] | undefined) => all!.slice(row * T, row * T + T);
      const [own, wanted] = [of(tokens), of(labels)];
      expect([own[0], own[21], own[42]]).toEqual([256, 257, 257]);
      expect(of(segments)).toEqual(Array.from({ length: T }, (_, i) => (i < 22 ? 0 : 1)));
      expect(new Set(of(mask))).toEqual(new Set([1]));
      expect(wanted.filter((label) => label !== -100).length).toBe(6); // 0.15 · 40
      // Where labels are put back, both halves are pieces of the text, and they follow each other if nextSentence says
      // so.
      const whole = Buffer.from(own.map((token, i) => (wanted[i] === -100 ? token : wanted[i]!))).toString("latin1");
      const [first, second] = [whole.slice(1, 21), whole.slice(22, 42)];
      expect(text.includes(first) && text.includes(second)).toBe(true);
      expect(text.includes(first + second)).toBe(next![row] === 0);
      follow += 1 - next![row]!;
    }
    expect(Math.abs(follow - 100)).toBeLessThan(30); // 4 σ
  });

  it("without a path reads the declarations of the installed packages as bytes, of which the last are held out", async () => {
    const { path: _, ...without } = { ...options, path: "" };
    const given = { batchSize: 3, seed: 0, rank: 0, ranks: 1, length: 43 };
    const data = await entry.open(without as never, given);
    const bytes = await typescriptDeclarations();
    expect(data.source).toBe("the installed TypeScript declarations");
    const heldOut = Math.floor(bytes.length * 0.2);
    expect([data.trainingUnits, data.validationUnits]).toEqual([bytes.length - heldOut, heldOut]);
    const batch = (await data.next())[0] as MaskedTextBatch;
    const tokens = Array.from(await batch.tokens.toTypedArray(), Number);
    const labels = Array.from(await batch.labels.toTypedArray(), Number);
    const text = Buffer.from(bytes);
    for (let row = 0; row < 3; row++) {
      const at = (i: number) => (labels[row * 43 + i] === -100 ? tokens[row * 43 + i]! : labels[row * 43 + i]!);
      const first = Buffer.from(Array.from({ length: 20 }, (_, i) => at(1 + i)));
      expect(text.includes(first)).toBe(true);
    }
    await data.close?.();
    const gpt2 = { ...without, tokenizer: "gpt2" };
    await expect(entry.open(gpt2 as never, given)).rejects.toThrow(
      "data.tokenizer is gpt2, and data.path names no text: give a file or folder of text, --data PATH.",
    );
  });

  it("gives the same rows from files of tokens, also where a row is in two of them", async () => {
    const bytes = readFileSync(join(folder, "text.txt"));
    const shards = join(folder, "shards");
    mkdirSync(shards);
    const put = (name: string, begin: number, end: number) => {
      const tokens = Uint16Array.from(bytes.subarray(begin, end));
      writeFileSync(join(shards, name), Buffer.concat([headerOf(tokens.length, 2), new Uint8Array(tokens.buffer)]));
    };
    put("train_1.bin", 0, 333);
    put("train_2.bin", 333, 1200);
    put("val.bin", 1200, 1500);
    const [text, files] = [await open({ batchSize: 60 }), await open({ batchSize: 60 }, { path: shards })];
    const rows = async (data: typeof text) => rowsOf((await data.next())[0]!, entry.fields);
    expect(await rows(files)).toEqual(await rows(text));
    await files[Symbol.asyncDispose]();
    await expect(open({}, { path: shards, blockSize: 2000 })).rejects.toThrow(/has 1200 tokens/);
  });

  it("refuses too few tokens, and rows too short for two sentences", async () => {
    await expect(open({ length: 2000 })).rejects.toThrow(
      /has 1200 tokens to train on, and at least two rows of 1997 .* are needed/,
    );
    await expect(open({ length: 4 })).rejects.toThrow(
      "data.blockSize is 4, and a row of two sentences has 5 tokens or more",
    );
  });
});

it("masking takes 15 %, of which 80 % become [MASK], 10 % a random token and 10 % stay", () => {
  const [rows, n] = [500, 100];
  let [masked, random, kept] = [0, 0, 0];
  const seen = new Float64Array(n);
  for (let row = 0; row < rows; row++) {
    const before = Int32Array.from({ length: n }, (_, i) => i);
    const after = before.slice();
    const places = Array.from({ length: n - 10 }, (_, i) => i + 5);
    const labels = maskTokens(
      after,
      places,
      { fraction: 0.15, mask: 999, vocabulary: 900 },
      new RandomNumbers(1, row, "masking"),
    );
    for (let i = 0; i < n; i++) {
      if (labels[i] === notPredicted) {
        expect(after[i]).toBe(before[i]);
        continue;
      }
      expect(labels[i]).toBe(before[i]);
      seen[i]!++;
      if (after[i] === 999) masked++;
      else if (after[i] === before[i]) kept++;
      else random++;
    }
  }
  const chosen = rows * Math.round(0.15 * (n - 10));
  expect(masked + random + kept).toBe(chosen);
  const near = (count: number, share: number) =>
    expect(Math.abs(count - share * chosen)).toBeLessThan(5 * Math.sqrt(chosen * share * (1 - share)));
  near(masked, 0.8);
  near(random, 0.1 * (899 / 900));
  near(kept, 0.1 + 0.1 / 900);
  expect(seen.subarray(0, 5).every((count) => count === 0)).toBe(true);
  const each = chosen / (n - 10);
  for (const count of seen.subarray(5, 95)) expect(Math.abs(count - each)).toBeLessThan(6 * Math.sqrt(each));
});
