import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsModules, runPython } from "../../../tensor/src/testing/python.ts";
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

const why = needsModules("tokenizers");
it.skipIf(why)(`gives the tokens of Python's tokenizers, for BPE, WordPiece and Unigram${why}`, async () => {
  const texts = [
    "The quick brown fox jumps over the lazy dog.",
    "naïve café, 日本語, 🦁 cubs\n\tand 1234567 numbers  with   spaces",
    "don't we'll CAPITALS and_underscores <|endoftext|>",
    "",
  ];
  const outputs = await runPython(`
from tokenizers import Tokenizer, models, trainers, pre_tokenizers, decoders, normalizers
texts = json.loads(${JSON.stringify(JSON.stringify(texts))})
corpus = [t for t in texts for _ in range(3)] + ["numbers of words in texts, and spaces between words " * 3]
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<|endoftext|>"]
def made(model, trainer, pre, decoder, normalizer=None):
    t = Tokenizer(model)
    t.pre_tokenizer, t.decoder = pre, decoder
    if normalizer: t.normalizer = normalizer
    t.train_from_iterator(corpus, trainer)
    return t
alphabet = pre_tokenizers.ByteLevel.alphabet()
all = {
    "bpe": made(models.BPE(), trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
                pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()),
    "wordpiece": made(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False),
                      pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(), normalizers.BertNormalizer()),
    "unigram": made(models.Unigram(), trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token="[UNK]", show_progress=False),
                    pre_tokenizers.Metaspace(), decoders.Metaspace()),
}
for name, t in all.items():
    t.save(os.path.join(${JSON.stringify(folder)}, name + ".json"))
    for i, text in enumerate(texts):
        outputs[f"{name}{i}"] = torch.tensor(t.encode(text, add_special_tokens=False).ids, dtype=torch.int64)
    outputs[name] = torch.tensor([t.get_vocab_size()], dtype=torch.int64)
`);
  const numbers = async (name: string) => Array.from(await outputs[name]!.toTypedArray(), Number);
  for (const name of ["bpe", "wordpiece", "unigram"]) {
    const path = join(folder, `${name}.json`);
    const tokenizer = await openTokenizer(path);
    expect([tokenizer.vocabulary]).toEqual(await numbers(name));
    for (const [i, text] of texts.entries())
      expect([name, ...(await tokenizer.encode(text))]).toEqual([name, ...(await numbers(`${name}${i}`))]);
  }
});

describe("gpt2", () => {
  it("has the ids of the published encoder", async () => {
    const tokenizer = await openTokenizer("gpt2");
    // https://huggingface.co/docs/transformers/model_doc/gpt2, GPT2Tokenizer
    expect([...(await tokenizer.encode("Hello world"))]).toEqual([15496, 995]);
    expect([...(await tokenizer.encode(" Hello world"))]).toEqual([18435, 995]);
    for (const text of ["", "naïve 日本語 🦁\n\n  x", "<|endoftext|>"])
      expect(await tokenizer.decode(await tokenizer.encode(text))).toBe(text);
    expect(() => tokenizer.decode([50257])).toThrow(
      "Token 50257 at position 0 is none of GPT-2's; give integers from 0 to 50256.",
    );
    expect(vocabularyOf("gpt2")).toBe(50257);
  });
});
