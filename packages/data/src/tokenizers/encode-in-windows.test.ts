import { Tokenizer } from "tokenizers";
import { describe, expect, it } from "vitest";
import { bytesJson } from "./byte-level-json.ts";
import { encodeInWindows } from "./encode-in-windows.ts";
import { gpt2Json } from "./gpt2-tokenizer.ts";

const letters = [..."ab▁ \nc1é🦁"];
const pieces = ["▁", "a", "b", "c", "ab", "abc", "▁a", "▁ab", "▁c", "bc", "ca", "▁bca", " ", "\n", "1", "é", "🦁"];
const unigram = {
  type: "Unigram",
  unk_id: 0,
  vocab: ["<unk>", ...pieces].map((piece, i) => [piece, -1 - (i % 7) / 3]),
};
const metaspace = (prepend_scheme: string, split: boolean) => ({
  type: "Metaspace",
  replacement: "▁",
  prepend_scheme,
  split,
});
const opened = (parts: object) => Tokenizer.fromString(JSON.stringify({ version: "1.0", added_tokens: [], ...parts }));

const tokenizers: Record<string, () => Promise<Tokenizer> | Tokenizer> = {
  "GPT-2's": async () => opened(await gpt2Json()),
  "of bytes, with a space in front": () =>
    opened({
      ...bytesJson(),
      pre_tokenizer: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    }),
  "Unigram, a space in front of the text": () => opened({ model: unigram, pre_tokenizer: metaspace("first", false) }),
  "Unigram of words": () =>
    opened({
      model: unigram,
      pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "WhitespaceSplit" }, metaspace("always", true)] },
    }),
  "Unigram, a letter in front, no white space at the ends": () =>
    opened({
      model: unigram,
      normalizer: {
        type: "Sequence",
        normalizers: [
          { type: "Strip", strip_left: true, strip_right: true },
          { type: "Prepend", prepend: "▁" },
          { type: "NFKD" },
        ],
      },
    }),
};

const encoded = (tokenizer: Tokenizer) => (text: string) => tokenizer.encode(text, null, { addSpecialTokens: false });

describe.each(Object.entries(tokenizers))("a text in windows, tokenizer %s", (_, open) => {
  it("has the ids of the whole text", async () => {
    const encode = encoded(await open());
    let state = 1;
    const random = (n: number) => {
      state = (state * 48271) % 2147483647;
      return state % n;
    };
    for (let i = 0; i < 12; i++) {
      const text = Array.from({ length: 1500 + random(500) }, () => letters[random(letters.length)]!).join("");
      let windows = 0;
      const counted = (part: string) => {
        windows++;
        return encode(part);
      };
      const found = await encodeInWindows(text, counted, { letters: 400, overlap: 128 });
      expect([...found]).toEqual((await encode(text)).getIds());
      expect(windows).toBeGreaterThan(4);
    }
  });

  it("has them in pieces too, each with what is before and after it", async () => {
    const encode = encoded(await open());
    const text = Array.from({ length: 1200 }, (_, i) => letters[(i * i * 7 + (i >> 3)) % letters.length]!).join("");
    const cuts = [0, ...Array.from(text.matchAll(/(?<=\S\n)(?=\S)/g), ({ index }) => index), text.length];
    for (const windows of [{}, { letters: 400, overlap: 128 }]) {
      const ids: number[] = [];
      for (const [i, cut] of cuts.slice(1).entries()) {
        const before = text.slice(Math.max(0, cuts[i]! - 100), cuts[i]!);
        const context = { before, after: text.slice(cut, cut + 100), ...windows };
        ids.push(...(await encodeInWindows(text.slice(cuts[i]!, cut), encode, context)));
      }
      expect(ids).toEqual((await encode(text)).getIds());
    }
    expect(cuts.length).toBeGreaterThan(5);
  });

  it.each([
    ["a word longer than a window", `ab ${"a".repeat(2500)} ab`],
    ["digits longer than a window", `ab ${"1".repeat(2500)} ab`],
    ["only spaces", " ".repeat(2500)],
    ["emoji", "🦁".repeat(1200)],
    ["long words one after the other", `${"abc".repeat(300)} ${"b1".repeat(400)}\n${"é".repeat(700)} `.repeat(3)],
  ])("has the ids of the whole text: %s", async (_, text) => {
    const encode = encoded(await open());
    const found = await encodeInWindows(text, encode, { letters: 400, overlap: 128 });
    expect([...found]).toEqual((await encode(text)).getIds());
  });
});
