import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { datasets } from "../datasets.ts";
import { openTokenizer } from "./tokenizers.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-end-of-text-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;
async function endOf(tokens: readonly string[], files: Record<string, unknown> = {}): Promise<number | undefined> {
  const path = join(folder, String(count++));
  mkdirSync(path);
  const vocab = Object.fromEntries(["[UNK]", ...tokens].map((token, id) => [token, id]));
  const json = { version: "1.0", added_tokens: [], model: { type: "WordLevel", vocab, unk_token: "[UNK]" } };
  for (const [name, content] of Object.entries({ "tokenizer.json": json, ...files }))
    writeFileSync(join(path, name), typeof content === "string" ? content : JSON.stringify(content));
  return (await openTokenizer(path)).endOfText;
}

it.each([
  ["tokenizer_config.json names it", { "tokenizer_config.json": { eos_token: "stop" } }],
  [
    "tokenizer_config.json has its settings",
    { "tokenizer_config.json": { eos_token: { content: "stop", lstrip: false } } },
  ],
  [
    "special_tokens_map.json names it, and tokenizer_config.json none that is there",
    { "tokenizer_config.json": { eos_token: "<gone>" }, "special_tokens_map.json": { eos_token: "stop" } },
  ],
  ["generation_config.json has a list", { "generation_config.json": { eos_token_id: [2, 1] } }],
  ["config.json has its id", { "tokenizer_config.json": { eos_token: null }, "config.json": { eos_token_id: 2 } }],
])("is the token of the tokenizer's own files: %s", async (_, files) => {
  expect(await endOf(["</s>", "stop"], files)).toBe(2);
});

it("is a known name where no file names one, and else none", async () => {
  expect(await endOf(["a", "<eos>"])).toBe(2);
  expect(await endOf(["a"], { "config.json": { eos_token_id: 7 } })).toBeUndefined();
});

it("is not looked for in a file that was cut short", async () => {
  await expect(endOf(["a"], { "tokenizer_config.json": '{"eos_token": "a' })).rejects.toThrow(
    /tokenizer_config\.json is not JSON, or was cut short: .*; fetch it again\.$/,
  );
});

it("is the token that is named, where one is", async () => {
  const path = join(folder, String(count - 1));
  expect((await openTokenizer("gpt2", { endOfText: "<|endoftext|>" })).endOfText).toBe(50256);
  expect((await openTokenizer("bytes", { endOfText: "\n" })).endOfText).toBe(10);
  rmSync(join(path, "tokenizer_config.json"));
  expect((await openTokenizer(path, { endOfText: "a" })).endOfText).toBe(1);
  for (const name of ["gpt2", "bytes", path])
    await expect(openTokenizer(name, { endOfText: "<eox>" })).rejects.toThrow(
      `The end of a text, "<eox>", is no token of ${name}; name one of its tokens, or leave it out.`,
    );
});

it("is between the texts of a file, or a line says that nothing is", async () => {
  const path = join(folder, "texts.jsonl");
  writeFileSync(path, ["a", "a", "b"].map((text) => `${JSON.stringify({ text })}\n`).join(""));
  const named = join(folder, String(count));
  await endOf(["a", "b", "stop"]);
  const options = { path, tokenizer: named, blockSize: 2, validationFraction: 0 };
  const given = { batchSize: 1, seed: 1, rank: 0, ranks: 1, length: 2 };
  const joined = await datasets.text.open(options, given);
  const ended = await datasets.text.open({ ...options, endOfText: "stop" }, given);
  expect([joined.trainingUnits, ended.trainingUnits]).toEqual([3, 5]); // tokens: a a b, and a stop a stop b
  expect(joined.remarks).toEqual([
    "3 texts are joined with no token between them, because no token of the tokenizer is known to end one; data.endOfText names one",
  ]);
  expect(ended.remarks).toEqual([]);
  await expect(
    datasets.text.open({ path, tokenizer: "bytes", endOfText: "\n", validationFraction: 0 }, given),
  ).rejects.toThrow(
    /^data\.endOfText is "\\n", and the bytes of .*texts\.jsonl are read as they are; set data\.column or data\.tokenizer too, or leave it out\.$/,
  );
});
