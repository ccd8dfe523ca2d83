import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { needsModules, runPython } from "../../../tensor/src/testing/python.ts";
import type { DatasetEntry } from "../dataset.ts";
import { datasets } from "../datasets.ts";
import { openTokenizer } from "./tokenizers.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-tokenizer-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const texts = [
  "Hello world",
  " The quick brown fox's 1234567 numbers,  don't\n\n\tthey?",
  "naïve café, 日本語, 🦁 cubs\u0000\u007f\u00ad",
  "",
];

const why = needsModules("transformers", "tokenizers");

async function write(name: keyof typeof datasets, options: object, into: string): Promise<void> {
  mkdirSync(into);
  const files = (await (datasets[name] as DatasetEntry).processorFiles!(options))!;
  for (const [name, text] of Object.entries(files)) writeFileSync(join(into, name), text);
}

/** The ids that AutoTokenizer gives to each text, or pair of texts; and the texts that it makes of them. */
async function idsThere(path: string, inputs: readonly (string | readonly string[])[]) {
  const outputs = await runPython(`
from transformers import AutoTokenizer
t = AutoTokenizer.from_pretrained(${JSON.stringify(path)})
for i, text in enumerate(json.loads(${JSON.stringify(JSON.stringify(inputs))})):
    found = t(*text) if isinstance(text, list) else t(text)
    outputs[f"ids{i}"] = torch.tensor(found["input_ids"], dtype=torch.int64)
    outputs[f"segments{i}"] = torch.tensor(found.get("token_type_ids", []), dtype=torch.int64)
    outputs[f"text{i}"] = torch.tensor(list(t.decode(found["input_ids"], skip_special_tokens=True).encode()), dtype=torch.int64)
    outputs["end"] = torch.tensor([-1 if t.eos_token_id is None else t.eos_token_id])`);
  const numbers = async (name: string) => Array.from(await outputs[name]!.toTypedArray(), Number);
  return Promise.all(
    inputs.map(async (_, i) => ({
      ids: await numbers(`ids${i}`),
      segments: await numbers(`segments${i}`),
      text: Buffer.from(await numbers(`text${i}`)).toString(),
      end: await numbers("end"),
    })),
  );
}

it.skipIf(why).each([
  ["text", { tokenizer: "bytes" }, -1],
  ["text", { tokenizer: "gpt2" }, 50256],
  ["tokens", { path: "x", vocabulary: 50257 }, 50256],
] as const)(
  `AutoTokenizer opens the files of %s, %o, and gives the same ids and texts${why}`,
  async (name, options, end) => {
    const path = join(folder, `${name}-${Object.values(options).join("-")}`);
    await write(name, options, path);
    const tokenizer = await openTokenizer("tokenizer" in options ? options.tokenizer : "gpt2");
    for (const [i, found] of (await idsThere(path, texts)).entries())
      expect(found).toMatchObject({ ids: [...(await tokenizer.encode(texts[i]!))], text: texts[i], end: [end] });
  },
  180_000,
);

it.skipIf(why).each(["masked-text", "labelled-text"] as const)(
  `AutoTokenizer adds the tokens of %s to a text and to a pair${why}`,
  async (name) => {
    for (const [tokenizer, first] of [
      ["bytes", 256],
      ["gpt2", 50257],
    ] as const) {
      const path = join(folder, `${name}-${tokenizer}`);
      await write(name, { path: "x", tokenizer }, path);
      const opened = await openTokenizer(tokenizer);
      const [a, b] = [[...(await opened.encode("a lion"))], [...(await opened.encode(" cub"))]];
      const [single, pair, masked] = await idsThere(path, ["a lion", ["a lion", " cub"], "a lion[MASK]"]);
      // The ids behind the vocabulary: [CLS], [SEP], [MASK].
      expect(single!.ids).toEqual([first, ...a, first + 1]);
      expect(pair!.ids).toEqual([first, ...a, first + 1, ...b, first + 1]);
      expect(pair!.segments).toEqual([...[0, ...a, 0].map(() => 0), ...[...b, 0].map(() => 1)]);
      expect(masked!.ids).toEqual([first, ...a, first + 2, first + 1]);
    }
  },
  180_000,
);

it.each([
  ["bytes", undefined],
  ["gpt2", 50256],
])("open here too, with the same ids and texts: %s", async (name, endOfText) => {
  const path = join(folder, `own-${name}`);
  await write("text", { tokenizer: name }, path);
  const [known, opened] = [await openTokenizer(name), await openTokenizer(path)];
  expect([opened.vocabulary, opened.endOfText]).toEqual([known.vocabulary, endOfText]);
  for (const text of texts) {
    expect([...(await opened.encode(text))]).toEqual([...(await known.encode(text))]);
    expect(await opened.decode(await known.encode(text))).toBe(text);
  }
});

it("are those of a tokenizer.json, and of the tokenizer_config.json beside it", async () => {
  const path = join(folder, "given");
  mkdirSync(path);
  const json = { model: { type: "BPE", vocab: { a: 0 }, merges: [] }, added_tokens: [{ id: 1, content: "</s>" }] };
  writeFileSync(join(path, "tokenizer.json"), JSON.stringify(json));
  const { processorFiles } = datasets.text as DatasetEntry;
  const { "tokenizer.json": own, "tokenizer_config.json": config } = (await processorFiles!({ tokenizer: path }))!;
  expect([JSON.parse(own!), JSON.parse(config!)]).toEqual([
    json,
    { tokenizer_class: "PreTrainedTokenizerFast", bos_token: "</s>", eos_token: "</s>" },
  ]);
  writeFileSync(join(path, "tokenizer_config.json"), '{"model_max_length": 7}');
  expect((await processorFiles!({ tokenizer: join(path, "tokenizer.json") }))!["tokenizer_config.json"]).toBe(
    '{"model_max_length": 7}',
  );
  const named = (await processorFiles!({ tokenizer: path, endOfText: "a" }))!;
  expect(JSON.parse(named["tokenizer_config.json"]!)).toEqual({ model_max_length: 7, eos_token: "a" });
  await expect(processorFiles!({ tokenizer: join(path, "none.json") })).rejects.toThrow(/Cannot read the tokenizer/);
  expect(await (datasets.tokens as DatasetEntry).processorFiles!({ path: "x", vocabulary: 7 })).toBeUndefined();
});
