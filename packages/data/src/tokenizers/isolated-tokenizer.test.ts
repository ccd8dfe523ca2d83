import { describe, expect, it } from "vitest";
import { DataError } from "../data-error.ts";
import { IsolatedTokenizer } from "./isolated-tokenizer.ts";

const words = { type: "WordLevel", vocab: { "[UNK]": 0, a: 1, b: 2 }, unk_token: "[UNK]" };

function tokenizer(parts: object, limit?: (letters: number) => number): IsolatedTokenizer {
  const json = JSON.stringify({ version: "1.0", added_tokens: [], model: words, ...parts });
  return new IsolatedTokenizer({ path: "mine.json", json, added: [], ...(limit && { limit }) });
}
const pattern = (Regex: string) => ({
  pre_tokenizer: { type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false },
});
const nested = pattern("(a+)+$");

describe("a tokenizer in a process of its own", () => {
  it("encodes and decodes, many texts at once", async () => {
    const opened = tokenizer({ pre_tokenizer: { type: "WhitespaceSplit" } });
    const texts = Array.from({ length: 40 }, (_, i) => "a b ".repeat(i));
    const ids = await Promise.all(texts.map((text) => opened.encode(text)));
    expect(ids.map((each) => [...each])).toEqual(texts.map((_, i) => Array(i).fill([1, 2]).flat()));
    expect(await opened.decode([1, 2, 1])).toBe("a b a");
  });

  it("takes half of a surrogate pair as U+FFFD, which UTF-8 has in its place", async () => {
    const opened = tokenizer({ model: { ...words, vocab: { "[UNK]": 0, "a\ufffdb": 1 } } });
    expect([...(await opened.encode("a\ud800b"))]).toEqual([1]);
  });

  it.each([
    ["nested repetitions", "(a+)+$", "a".repeat(40)],
    ["alternatives that begin alike", "(a|aa)+$", "a".repeat(80)],
    ["a repeated back-reference", "(a*)*\\1$", "a".repeat(40)],
  ])("names the pattern of a search that has no end, and works afterwards: %s", async (_, regex, text) => {
    const opened = tokenizer(pattern(regex));
    const wrong = opened.encode(`${text}b`);
    await expect(wrong).rejects.toThrow(DataError);
    await expect(wrong).rejects.toThrow(
      /^mine\.json cannot be used: Onig: .* \(of a text that begins with "aaaa.*\); a regular expression of it may need steps/,
    );
    await expect(wrong).rejects.toThrow(`without end: ${JSON.stringify(regex)}; write it without nested repetitions.`);
    expect([...(await opened.encode("b"))]).toEqual([2]);
  });

  it("says of a word that the model cannot encode what it lacks", async () => {
    const opened = tokenizer({ model: { ...words, vocab: { a: 1 } } });
    await expect(opened.encode("b")).rejects.toThrow(
      "mine.json cannot be used: WordLevel error: Missing [UNK] token from the vocabulary; its model has no token for what it does not know: name one of its vocabulary as unk_token",
    );
    expect([...(await opened.encode("a"))]).toEqual([1]);
  });

  it("ends a process that takes longer than its limit, and works afterwards", async () => {
    // Each part takes a million steps, which the library allows.
    const opened = tokenizer(nested, (letters) => (letters > 10_000 ? 1 : 600));
    await expect(opened.encode(`${"a".repeat(18)}b`.repeat(5000))).rejects.toThrow(
      'mine.json cannot be used: it had not ended after 1 seconds (of a text that begins with "aaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaabaa")',
    );
    expect([...(await opened.encode("b"))]).toEqual([2]);
  });

  it("ends where a text needs more memory than the limit, and works afterwards", async () => {
    // Each replacement writes a thousand letters for one.
    const replace = { type: "Replace", pattern: { String: "a" }, content: "a".repeat(1000) };
    const opened = tokenizer({ normalizer: { type: "Sequence", normalizers: Array(4).fill(replace) } });
    const wrong = opened.encode("a");
    await expect(wrong).rejects.toThrow(DataError);
    await expect(wrong).rejects.toThrow(
      /^mine\.json cannot be used: it needs more than \d+ MB of memory \(of a text that begins with "a"\); give shorter texts, or check where the file is from: its normalizer or pre_tokenizer may write far more than it reads\.$/,
    );
    expect([...(await opened.encode("b"))]).toEqual([2]);
  });

  it("cuts what the library says of a file", async () => {
    const model = { type: "BPE", vocab: { a: 0 }, merges: [`a ${"b".repeat(1 << 20)}`] };
    const said = (await tokenizer({ model })
      .load()
      .catch((error: unknown) => error)) as Error;
    expect(said).toBeInstanceOf(DataError);
    expect(said.message).toMatch(/^mine\.json cannot be used: .{1,40}b{300,500}…; .{1,120}$/);
  });

  it.each([
    [
      "a table of SentencePiece that is none",
      { normalizer: { type: "Precompiled", precompiled_charsmap: "AAAA" } },
      /Cannot parse precompiled_charsmap/,
    ],
    [
      "a prefix longer than its token",
      { model: { type: "BPE", vocab: { a: 0, b: 1, ab: 2 }, merges: ["a b"], continuing_subword_prefix: "####" } },
      /out of range/,
    ],
    [
      "merges of absent tokens",
      { model: { type: "BPE", vocab: { a: 0 }, merges: ["a b"] } },
      /Token `b` out of vocabulary/,
    ],
    ["a wrong pattern", pattern("(a"), /end pattern with unmatched parenthesis/],
    ["no known part", { pre_tokenizer: { type: "Guess" } }, /did not match any variant/],
  ])("refuses what makes the library give up: %s", async (_, parts, reason) => {
    const loaded = tokenizer(parts).load();
    await expect(loaded).rejects.toThrow(DataError);
    await expect(loaded).rejects.toThrow(reason);
    await expect(loaded).rejects.toThrow(/^mine\.json cannot be used: .*; .*Python's tokenizers.*\.$/);
  });

  it("names the types of the part in which one is unknown", async () => {
    const pretokenizers = [{ type: "WhitespaceSplit" }, { type: "Guess" }];
    await expect(tokenizer({ pre_tokenizer: { type: "Sequence", pretokenizers } }).load()).rejects.toThrow(
      /; its pre_tokenizer has the types "Sequence", "Guess", "WhitespaceSplit": one of them, or an option, is unknown here; write tokens with/,
    );
  });
});
