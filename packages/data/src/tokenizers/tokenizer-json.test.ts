import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DataError } from "../data-error.ts";
import { bertTokens, openTokenizer, vocabularyOf } from "./tokenizers.ts";

let folder: string;
const wordPiece = {
  version: "1.0",
  added_tokens: ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map((content, id) => ({
    id,
    content,
    special: true,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  })),
  normalizer: {
    type: "BertNormalizer",
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  },
  pre_tokenizer: { type: "BertPreTokenizer" },
  post_processor: null,
  decoder: { type: "WordPiece", prefix: "##", cleanup: true },
  model: {
    type: "WordPiece",
    unk_token: "[UNK]",
    continuing_subword_prefix: "##",
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(
      ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "a", "lion", "cub", "##s", "."].map(
        (t, i) => [t, i],
      ),
    ),
  },
};
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-tokenizer-"));
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(wordPiece));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a tokenizer.json", () => {
  it("encodes and decodes; a folder with one may be named", async () => {
    const tokenizer = await openTokenizer(folder);
    // Devlin et al. 2019: greedy longest match first, ## in front of what continues a word
    expect([...(await tokenizer.encode("Unaffable lion cubs."))]).toEqual([5, 6, 7, 9, 10, 11, 12]);
    expect(await tokenizer.decode([5, 6, 7, 9, 10, 11, 12])).toBe("unaffable lion cubs.");
    expect([...(await tokenizer.encode("tiger"))]).toEqual([1]);
    expect([tokenizer.vocabulary, vocabularyOf(join(folder, "tokenizer.json"))]).toEqual([13, 13]);
    expect(tokenizer.endOfText).toBe(3);
  });

  it.each([
    ["tokenizer_config.json", (content: string) => ({ added_tokens_decoder: { 13: { content, special: true } } })],
    ["tokenizer_config.json", (content: string) => ({ additional_special_tokens: [content] })],
    ["tokenizer_config.json", (content: string) => ({ extra_special_tokens: { image_token: content } })],
    ["special_tokens_map.json", (content: string) => ({ additional_special_tokens: [{ content }] })],
    ["added_tokens.json", (content: string) => ({ [content]: 13 })],
  ])("is refused where %s lists tokens that it lacks, which transformers adds", async (name, listing) => {
    const file = join(folder, name);
    const beside = (content: string) => writeFileSync(file, JSON.stringify(listing(content)));
    beside("<extra>");
    await expect(openTokenizer(folder)).rejects.toThrow(
      `${file} has the token "<extra>", and the tokenizer.json beside it lacks it; transformers writes it there: python -c 'from transformers import AutoTokenizer as T; f = "${folder}"; T.from_pretrained(f).save_pretrained(f)'.`,
    );
    beside("lion");
    expect((await openTokenizer(folder)).vocabulary).toBe(13);
    rmSync(file);
  });

  it("with BERT's tokens keeps their ids; others get them behind their vocabulary", () => {
    expect(bertTokens(folder)).toEqual({ vocabulary: 13, classify: 2, separate: 3, mask: 4, pad: 0 });
    expect(bertTokens("bytes")).toEqual({ vocabulary: 260, classify: 256, separate: 257, mask: 258, pad: 259 });
  });

  it("that is absent or none is refused in one line", async () => {
    const wrong = join(folder, "wrong.json");
    writeFileSync(wrong, '{"model": 3}');
    expect(() => vocabularyOf(wrong)).toThrow(/wrong\.json is no tokenizer\.json: it has no model with a vocabulary; /);
    expect(() => vocabularyOf("gpt3")).toThrow(
      "Cannot read the tokenizer gpt3: it does not exist; data.tokenizer is bytes, gpt2, or",
    );
  });
});

describe("a hostile tokenizer.json", () => {
  const unknown = { "[UNK]": 0 };
  const wordLevel = (vocab: unknown, more: object = {}) =>
    JSON.stringify({
      version: "1.0",
      added_tokens: [],
      model: { type: "WordLevel", vocab, unk_token: "[UNK]" },
      ...more,
    });
  const added = (...tokens: object[]) => wordLevel(unknown, { added_tokens: tokens });
  const flags = { special: true, single_word: false, lstrip: false, rstrip: false, normalized: false };
  const sequences = (levels: number) =>
    `${'{"type": "Sequence", "pretokenizers": ['.repeat(levels)}{"type": "WhitespaceSplit"}${"]}".repeat(levels)}`;

  it.each([
    ["negative ids", wordLevel({ "[UNK]": 0, a: -1 }), 'the id of "a" is -1, and no integer from 0 to 2147483647'],
    ["huge ids", wordLevel({ "[UNK]": 0, a: 2 ** 40 }), 'the id of "a" is 1099511627776, and no integer'],
    ["strings as ids", wordLevel({ "[UNK]": 0, a: "1" }), 'the id of "a" is "1", and no integer'],
    ["fractions as ids", wordLevel({ "[UNK]": 0, a: 0.5 }), 'the id of "a" is 0.5, and no integer'],
    ["an id twice", wordLevel({ "[UNK]": 0, a: 1, b: 1 }), '"a" and "b" both have the id 1'],
    ["a vocabulary of numbers", wordLevel([1, 2]), "entry 0 of its vocabulary is 1, and no token with its score"],
    ["a vocabulary that is a string", wordLevel("a b"), "it has no model with a vocabulary"],
    ["no model", "[]", "it has no model with a vocabulary"],
    ["nothing", "null", "it has no model with a vocabulary"],
    ["added tokens that are none", wordLevel(unknown, { added_tokens: {} }), "its added_tokens are no list"],
    [
      "an added token without an id",
      added({ content: "x" }),
      'entry 0 of its added_tokens is {"content":"x"}, which has no',
    ],
    [
      "an added token behind a hole",
      added({ id: 7, content: "x", ...flags }),
      'the added token "x" has id 7, but .* give it 1',
    ],
    [
      "merges of absent tokens",
      JSON.stringify({ model: { type: "BPE", vocab: { a: 0 }, merges: [["a", "b"]] } }),
      "out of vocabulary",
    ],
    [
      "merges at random",
      JSON.stringify({ model: { type: "BPE", vocab: { a: 0 }, merges: [], dropout: 0.1 } }),
      "leaves out merges at random",
    ],
    [
      "a deep sequence",
      wordLevel(unknown).replace("{", `{"pre_tokenizer": ${sequences(100_000)},`),
      "recursion limit exceeded",
    ],
    ["a file that was cut short", wordLevel(unknown).slice(0, -9), "is not JSON, or was cut short"],
  ])("is refused in a line that says why: %s", async (_, content, reason) => {
    const path = join(folder, "hostile.json");
    writeFileSync(path, content);
    const opened = openTokenizer(path);
    await expect(opened).rejects.toThrow(DataError);
    await expect(opened).rejects.toThrow(
      new RegExp(`^\\S+hostile\\.json .*${reason.replace(/[[\](){}]/g, "\\$&")}.*; .*\\.$`),
    );
  });

  it("is refused where it is no file, or has no end", async () => {
    const pipe = join(folder, "pipe.json");
    execFileSync("mkfifo", [pipe]);
    expect(() => vocabularyOf(pipe)).toThrow(`${pipe} is a named pipe and no regular file; `);
    expect(() => vocabularyOf("/dev/zero")).toThrow("/dev/zero is a device or socket and no regular file; ");
    const large = join(folder, "large.json");
    writeFileSync(large, "");
    truncateSync(large, 3 * 2 ** 30);
    expect(() => vocabularyOf(large)).toThrow("large.json: it has 3221225472 bytes, and 104857600 is the most; ");
  });

  it("is refused before its lists and objects could fill the memory", () => {
    const path = join(folder, "nested.json");
    writeFileSync(path, `{"model":{"vocab":{"a":0}},"more":[${"{},".repeat(1 << 22)}0]}`);
    expect(() => vocabularyOf(path)).toThrow(
      /nested\.json: it has 4194308 lists and objects, and 4194304 is the most; /,
    );
  });

  it("may have 300,000 tokens, ids with holes, and names of JavaScript's own", async () => {
    const path = join(folder, "many.json");
    const names = [
      "[UNK]",
      "__proto__",
      "constructor",
      "toString",
      ...Array.from({ length: 300_000 }, (_, i) => `t${i}`),
    ];
    const entries = names.map((name, id) => `${JSON.stringify(name)}: ${2 * id}`);
    const tokens = Array.from({ length: 126_000 }, (_, i) => ({ id: 2 * (i + 4), content: `t${i}`, ...flags }));
    writeFileSync(path, wordLevel({}, { added_tokens: tokens }).replace('"vocab":{}', `"vocab":{${entries.join()}}`));
    expect(vocabularyOf(path)).toBe(2 * 300_003 + 1);
    const tokenizer = await openTokenizer(path);
    expect([...(await tokenizer.encode("constructor"))]).toEqual([4]);
    expect(bertTokens(path).classify).toBe(2 * 300_003 + 1);
    expect(tokenizer.endOfText).toBeUndefined();
    await expect(tokenizer.decode([2 ** 32])).rejects.toThrow(
      /^Token 4294967296 at position 0 is none of .*many\.json; give integers/,
    );
  });
});
