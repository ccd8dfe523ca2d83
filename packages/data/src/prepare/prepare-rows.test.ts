/** Rows that are prepared, beside the same rows that are not. */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsModules, runPython } from "../../../tensor/src/testing/python.ts";
import type { ChatRowOptions } from "../chat/chat-options.ts";
import { datasets } from "../datasets.ts";
import { rowsOf } from "../testing/dataset-contract.ts";
import { prepareRows } from "./prepare-rows.ts";

let folder: string;
const options = { tokenizer: "bytes", template: "chatml", loss: "answers" } as const;
const at = (name: string) => join(folder, name);
const prepare = (path: string, out: string, more: object = {}) =>
  prepareRows({ ...options, path: at(path), out: at(out), ...more } as ChatRowOptions & { out: string });
const open = (path: string, more: object = {}) =>
  datasets.chat.open(
    { ...options, packing: "none", validationFraction: 0.2, path: at(path), blockSize: 90, ...more },
    { batchSize: 2, seed: 3, rank: 0, ranks: 1 },
  );

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "terse-prepare-rows-"));
  mkdirSync(at("raw"));
  const rows = (count: number, from: number) =>
    Array.from({ length: count }, (_, i) => ({
      messages: [
        { role: "user", content: "a question? ".repeat((i * 7) % 5) },
        ...(i % 6 === 5 ? [] : [{ role: "assistant", content: `answer ${from + i} 😀`.repeat(1 + ((i * 5) % 4)) }]),
      ],
    }));
  const lines = (all: readonly object[]) => all.map((row) => `${JSON.stringify(row)}\n`).join("");
  writeFileSync(at("one.jsonl"), lines(rows(40, 0)));
  writeFileSync(at("raw/train.jsonl"), lines(rows(40, 0)));
  writeFileSync(at("raw/validation.jsonl"), lines(rows(12, 100)));
  await prepare("one.jsonl", "one");
  await prepare("raw", "both");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("prepared rows", () => {
  it.each([
    ["one.jsonl", "one", "none"],
    ["one.jsonl", "one", "best-fit"],
    ["one.jsonl", "one", "wrapped"],
    ["raw", "both", "best-fit"],
  ])("of %s in %s are the same batches, packed by %s", async (raw, prepared, packing) => {
    const [a, b] = [await open(raw, { packing }), await open(prepared, { packing })];
    for (let step = 0; step < 12; step++) {
      const [mine, theirs] = [(await a.next())[0]!, (await b.next())[0]!];
      expect(await rowsOf(mine, datasets.chat.fields)).toEqual(await rowsOf(theirs, datasets.chat.fields));
    }
    const heldOut = async (data: typeof a) => {
      const found: unknown[] = [];
      for await (const batch of data.validation({ windows: 99, sharded: false }))
        found.push(batch.weight, await rowsOf(batch, datasets.chat.fields));
      return found;
    };
    expect(await heldOut(a)).toEqual(await heldOut(b));
    const facts = ({ fingerprint, prompt, ends, trainingUnits, validationUnits, remarks }: typeof a) => ({
      ...{ fingerprint, prompt, ends, trainingUnits, validationUnits, remarks },
    });
    expect(facts(a)).toEqual(facts(b));
    expect(a.inventory!.passedOver).toEqual(b.inventory!.passedOver);
    for (const data of [a, b]) await data.close();
  });

  it("may be cut when they are prepared, and are not longer afterwards", async () => {
    await prepare("one.jsonl", "cut", { most: 70 });
    const [a, b] = [await open("one.jsonl", { blockSize: 60 }), await open("cut", { blockSize: 60 })];
    expect([b.fingerprint, b.trainingUnits]).toEqual([a.fingerprint, a.trainingUnits]);
    for (const data of [a, b]) await data.close();
    await expect(open("cut", { blockSize: 71 })).rejects.toThrow(
      /cut was prepared with rows of at most 70 tokens, and data\.blockSize is 71; set data\.blockSize to 70 or less/,
    );
  });

  it.each([
    [{ loss: "all" }, /train\.rows was prepared with data\.loss answers, and the recipe has all; set data\.loss to/],
    [{ messages: "chat" }, /prepared without data\.messages, and the recipe has chat; leave data\.messages out, or/],
    [{ tokenizer: "gpt2" }, /prepared by another tokenizer than data\.tokenizer, gpt2; name that one, or prepare/],
    [{ template: undefined }, /prepared with another chat template than that of the tokenizer's folder, .* to chatml/],
  ])("are refused where they would be read in another way: %j", async (more, message) => {
    await expect(open("one", more)).rejects.toThrow(message);
  });

  it("are refused where a file is damaged", async () => {
    mkdirSync(at("damaged"));
    const path = at("damaged/train.rows");
    const whole = readFileSync(at("one/train.rows"));
    const broken: [content: Uint8Array, message: RegExp][] = [
      [whole.subarray(0, 100), /it has 100 bytes/],
      [whole.subarray(0, whole.length - 1), /its header says \d+; prepare the rows anew/],
      [Buffer.concat([Buffer.from("x".repeat(1024)), whole]), /it does not begin with a header/],
      [Buffer.from(whole).fill("U8 ", 60, 63), /damaged: /],
      [Buffer.from(whole).fill(0xff, whole.length - 3), /damaged: /],
    ];
    for (const [content, message] of broken) {
      writeFileSync(path, content);
      await expect(open("damaged")).rejects.toThrow(message);
    }
    copyFileSync(at("one/train.rows"), path);
    await (await open("damaged")).close();
  });

  it("leave no file where somebody ends the work, or where there is no answer", async () => {
    const controller = new AbortController();
    const progress = () => controller.abort(new Error("enough"));
    const ended = prepareRows(
      { ...options, path: at("raw"), out: at("ended"), signal: controller.signal } as never,
      progress,
    );
    await expect(ended).rejects.toThrow("enough");
    expect(readdirSync(at("ended"))).toEqual([]);
    writeFileSync(at("asks.jsonl"), `${JSON.stringify({ messages: [{ role: "user", content: "?" }] })}\n`);
    await expect(prepare("asks.jsonl", "asks")).rejects.toThrow(/asks\.jsonl has no rows with an answer to train on/);
    expect(readdirSync(at("asks"))).toEqual([]);
    await expect(prepare("one.jsonl", "one")).rejects.toThrow(/train\.rows is there already; remove it, or name/);
  });

  const why = needsModules("safetensors");
  it.skipIf(why !== "")(`are opened by Python's safetensors${why}`, async () => {
    const { tokens, lengths, bits } = (await runPython(`
import numpy, torch
from safetensors.numpy import load_file
rows = load_file(${JSON.stringify(at("one/train.rows"))})
outputs["tokens"] = torch.from_numpy(rows["tokens"].astype("int64"))
outputs["lengths"] = torch.from_numpy(rows["lengths"].astype("int64"))
outputs["bits"] = torch.from_numpy(numpy.unpackbits(rows["learned"], bitorder="little").astype("int64"))
`)) as Record<string, { toTypedArray(): Promise<ArrayLike<bigint>> }>;
    const [ids, sizes, learned] = await Promise.all(
      [tokens, lengths, bits].map(async (each) => Array.from(await each!.toTypedArray(), Number)),
    );
    const first = ids!.slice(0, sizes![0]);
    expect(Buffer.from(first).toString()).toBe(
      "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\nanswer 0 😀<|im_end|>\n",
    );
    expect(Buffer.from(first.filter((_, i) => learned![i] === 1)).toString()).toBe("answer 0 😀<|im_end|>");
  });
});
