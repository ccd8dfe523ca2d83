/** Rows, labels and packing beside TRL's SFTTrainer and its collator. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { needsModules, runPython } from "../../../tensor/src/testing/python.ts";
import type { TextBatch } from "../batch.ts";
import { datasets } from "../datasets.ts";
import { chatml } from "./chatml.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-trl-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const words = ["amber birch", "cedar?", "dogwood", "elm and fir.", "ginkgo", "hazel 🌳"];
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });
/** Of different lengths, some longer than 40 tokens. */
const turns = Array.from({ length: 23 }, (_, i) =>
  Array.from({ length: 1 + (i % 3) }, (_, turn) => [
    user(words.slice(0, 1 + ((i + turn) % 6)).join(" ")),
    assistant(words.slice((i + 2 * turn) % 5, ((i + 2 * turn) % 5) + 1 + (i % 2)).join(" ")),
  ]).flat(),
);
const most = 40;

const rows = {
  messages: turns.map((messages) => ({ messages })),
  prompts: turns.map((messages) => ({ prompt: messages.slice(0, -1), completion: messages.slice(-1) })),
  texts: turns.map(([first, second]) => ({ prompt: first!.content, completion: ` ${second!.content}` })),
  sharegpt: turns.map((messages) => ({
    conversations: messages.map(({ role, content }) => ({ from: role, value: content })),
  })),
};

interface Prepared {
  readonly input_ids: readonly (readonly number[])[];
  readonly labels: readonly (readonly number[])[];
  readonly position_ids?: readonly (readonly number[])[];
}

const why = needsModules("transformers", "trl", "datasets");

it.skipIf(why)(`tokens, labels and positions are those of TRL${why}`, async () => {
  for (const [name, each] of Object.entries(rows))
    writeFileSync(join(folder, `${name}.jsonl`), each.map((row) => `${JSON.stringify(row)}\n`).join(""));
  writeFileSync(join(folder, "asked.json"), JSON.stringify({ words: [...words, chatml], template: chatml, most }));
  await runPython(
    `folder = ${JSON.stringify(folder)}\n${readFileSync(new URL("../../trl.py", import.meta.url), "utf8")}`,
  );
  const found = JSON.parse(readFileSync(join(folder, "found.json"), "utf8")) as Record<string, readonly Prepared[]>;
  const options = { tokenizer: join(folder, "tokenizer"), blockSize: most, validationFraction: 0 };

  const mine = async (name: string, more: object = {}) => {
    const given = {
      ...datasets.chat.options,
      ...options,
      loss: "answers",
      packing: "none",
      path: join(folder, `${name}.jsonl`),
      ...more,
    };
    const data = await datasets.chat.open(given, { batchSize: 1, seed: 0, rank: 0, ranks: 1 });
    const samples: string[] = [];
    for (let i = 0; i < data.trainingSamples; i++) {
      const { tokens, next, positions } = (await data.next())[0]! as TextBatch;
      const [ids, after, places] = await Promise.all(
        [tokens, next, positions].map(async (each) => (each ? Array.from(await each.toTypedArray(), Number) : [])),
      );
      samples.push(JSON.stringify([ids, after, places]));
    }
    await data.close();
    return samples.sort();
  };
  /** TRL's labels are of the tokens themselves; a model compares them with what it says one place before. */
  const theirs = (name: string) =>
    found[name]!.map(({ input_ids: [ids], labels: [labels], position_ids }) => [
      ids,
      [...labels!.slice(1), -100],
      position_ids?.[0] ?? [],
    ])
      .map((each) => JSON.stringify(each))
      .sort();

  for (const name of Object.keys(rows)) expect([name, ...(await mine(name))]).toEqual([name, ...theirs(name)]);
  expect(await mine("messages", { packing: "best-fit" })).toEqual(theirs("packed"));
  // TRL's "wrapped" lets a row see the one before it: its ids are compared alone.
  const idsOf = (samples: readonly string[]) =>
    samples.map((each) => JSON.stringify((JSON.parse(each) as unknown[])[0])).sort();
  expect(idsOf(await mine("messages", { packing: "wrapped" }))).toEqual(idsOf(theirs("wrapped")));
});
