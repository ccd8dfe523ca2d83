import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
import { Gpt2 } from "@terse/models";
import { manualSeed } from "@terse/tensor";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { behind, sample } from "./sample.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-sample-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const shape = { context: 16, width: 16, heads: 2, layers: 1 };
const args = { command: "sample", prompt: "To be", bytes: 6, temperature: 1, topK: 0, topP: 1, seed: 1 } as const;

async function written(more: object = {}): Promise<string> {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  try {
    expect(await sample({ ...args, ...more, run: folder })).toBe(0);
    return write.mock.calls.map(([text]) => String(text)).join("");
  } finally {
    write.mockRestore();
  }
}

it("continues a text with the weights of a folder, by GPT-2's tokenizer; the same seed writes the same", async () => {
  manualSeed(3);
  const model = new Gpt2(shape);
  await saveModel(folder, model.namedParameters(), model.config);
  const text = await written();
  expect(text).toMatch(/^To be.+\n$/s);
  expect(await written()).toBe(text);
  expect(await written({ seed: 2 })).not.toBe(text);
  expect(await written({ topK: 1, seed: 2 })).toBe(await written({ temperature: 0 }));
});

it("says of a folder without a model what can be named", async () => {
  const absent = join(folder, "gpt2");
  await expect(sample({ ...args, run: absent })).rejects.toThrow(
    `there is no folder ${absent}; terse downloads no weights: write them there with transformers' save_pretrained, or name a run`,
  );
  await expect(sample({ ...args, run: folder })).rejects.toThrow(
    `${folder} has no saved run (step-N/manifest.json), and no weights (model.safetensors and config.json, as transformers' save_pretrained writes them); name a folder that has one of them`,
  );
  const shard = join(folder, "shard", "model-00001-of-00002.safetensors");
  mkdirSync(join(folder, "shard"));
  writeFileSync(shard, "");
  await expect(sample({ ...args, run: join(folder, "shard") })).rejects.toThrow(
    "save_pretrained writes them), but model-00001-of-00002.safetensors, a shard without its index, model.safetensors.index.json; name a folder",
  );
  await expect(sample({ ...args, run: join(folder, "step-3") })).rejects.toThrow("step-3 has no saved run");
  const part = join(folder, "part"); // as a machine without rank 0 has it
  mkdirSync(join(part, "step-4"), { recursive: true });
  writeFileSync(join(part, "step-4", "state-rank-1.safetensors"), "");
  for (const path of [part, join(part, "step-4")])
    await expect(sample({ ...args, run: path })).rejects.toThrow(
      `${part} has only what this machine's ranks wrote of step-4: weights and manifest are on the machine where rank 0 was; take part on that machine, or copy them`,
    );
  const run = join(folder, "sweep", "seed-0");
  mkdirSync(join(run, "step-2"), { recursive: true });
  writeFileSync(join(run, "step-2", "manifest.json"), "");
  await expect(sample({ ...args, run: join(folder, "sweep") })).rejects.toThrow(
    `${join(folder, "sweep")} is no run, and has runs in it: name one of them, such as ${run}`,
  );
  await expect(sample({ ...args, run: join(run, "step-3") })).rejects.toThrow(
    `${join(run, "step-3")} is no save: ${run} has step-2; name one of these`,
  );
  const file = join(folder, "model.safetensors");
  writeFileSync(file, "");
  await expect(sample({ ...args, run: file })).rejects.toThrow(
    `${file} is a file; name the folder that holds it, ${folder}`,
  );
});

it("asks for the tokenizer of a model whose vocabulary is no known one's", async () => {
  const model = new Gpt2({ ...shape, vocabulary: 300 });
  await saveModel(folder, model.namedParameters(), model.config);
  await expect(sample({ ...args, run: folder })).rejects.toThrow(
    `${folder} has no tokenizer, and none that is known has its model's 300 tokens; put the model's tokenizer.json there`,
  );
});

it("does not guess the tokenizer of weights that have one in another form", async () => {
  const model = new Gpt2({ ...shape, vocabulary: 256 });
  await saveModel(folder, model.namedParameters(), model.config);
  writeFileSync(join(folder, "vocab.json"), "{}");
  await expect(sample({ ...args, run: folder })).rejects.toThrow(
    `${folder} has its tokenizer in vocab.json, and no tokenizer.json, which alone is read; transformers writes it: python -c`,
  );
});

it.each([
  ["amber birch", "amber birch cedar", " cedar"], // the first word of a text has no space
  ["caf\ufffd", "café au lait", "é au lait"], // the prompt ends in the middle of a letter
  ["a\ufffd", "a\ufffd!", "!"], // which does not go on
  ["cub .", "cub. Lions", ". Lions"], // a decoder takes a space away
  ["\ud83e\udd81", "\ud83e\udd82", "\ud83e\udd82"], // not half a letter
  ["", "x", "x"],
  ["x", "x", ""],
])("writes what is behind the prompt: %j, %j", (begin, all, expected) => expect(behind(begin, all)).toBe(expected));

it("answers a message by a chat template, up to the token that ends the answer", async () => {
  manualSeed(5);
  const tokens = ["<unk>", "<s>", "<|end|>", "user:", "bot:", "hello", "amber", "birch"];
  const model = {
    type: "WordLevel",
    vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
    unk_token: "<unk>",
  };
  const whole = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const added_tokens = [1, 2].map((id) => ({ id, content: tokens[id], ...whole }));
  const json = { version: "1.0", added_tokens, pre_tokenizer: { type: "WhitespaceSplit" }, model };
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(json));
  const gpt2 = new Gpt2({ ...shape, context: 64, vocabulary: tokens.length });
  await saveModel(folder, gpt2.namedParameters(), gpt2.config);
  const asked = { prompt: "hello", chat: true, bytes: 40, temperature: 3 } as const;
  await expect(written(asked)).rejects.toThrow(
    /has no chat template .*; name chatml, or the path of .* by --template for sample/,
  );
  const template =
    "{% for m in messages %}{{ {'user': 'user:', 'assistant': 'bot:'}[m.role] }} {{ m.content }} <|end|> {% endfor %}{% if add_generation_prompt %}bot:{% endif %}";
  writeFileSync(join(folder, "chat_template.jinja"), template);
  const text = await written(asked);
  // What it writes without an end, up to the first one: the prompt is "user: hello <|end|> bot:".
  const all = await written({ prompt: "user: hello <|end|> bot:", bytes: 40, temperature: 3 });
  expect(all.startsWith("user: hello <|end|> bot:")).toBe(true);
  expect(text.length).toBeLessThan(all.length);
  expect(all.slice("user: hello <|end|> bot:".length).trim().startsWith(text.trim())).toBe(true);
});

it("writes the space before the first new word, which a tokenizer's words have between two", async () => {
  const words = ["[UNK]", "amber", "birch", "cedar", "delta"];
  const model = {
    type: "WordPiece",
    vocab: Object.fromEntries(words.map((word, id) => [word, id])),
    unk_token: "[UNK]",
  };
  const parts = { continuing_subword_prefix: "##", max_input_chars_per_word: 100 };
  const pre_tokenizer = { type: "WhitespaceSplit" };
  const decoder = { type: "WordPiece", prefix: "##", cleanup: true };
  const json = { version: "1.0", added_tokens: [], pre_tokenizer, decoder, model: { ...model, ...parts } };
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(json));
  const gpt2 = new Gpt2({ ...shape, vocabulary: words.length });
  await saveModel(folder, gpt2.namedParameters(), gpt2.config);
  expect(await written({ prompt: "amber birch", bytes: 3 })).toMatch(
    /^amber birch( (amber|birch|cedar|delta|\[UNK\])){3}\n$/,
  );
  // Without a prompt the model continues a newline, which this tokenizer leaves out.
  await expect(written({ prompt: "" })).rejects.toThrow('the prompt "" has no tokens; name one with a word in it');
});
