import { Tokenizer } from "tokenizers";
import { describe, expect, it } from "vitest";
import { gpt2Json } from "./gpt2-tokenizer.ts";
import { openTokenizer, vocabularyOf } from "./tokenizers.ts";

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

  it("has the ids of Hugging Face's library, of very long words too", async () => {
    const tokenizer = await openTokenizer("gpt2");
    const library = Tokenizer.fromString(JSON.stringify({ ...(await gpt2Json()), added_tokens: [] }));
    const long = ["a", " ", "é", "日本", "12", "-=", "\n", "🦁", "\u0301"].map(
      (part) => `To be ${part.repeat(5000)}, or not`,
    );
    const plain = [
      "a\r\nb\u0000c\u2028d\ufeffe\u00ad",
      "हिन्दी में، العربية نصٌّ עִבְרִית",
      "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301",
      "half \ud800 a pair",
      "<|endoftext|>",
    ];
    for (const text of [...plain, ...long, long.join("\n")])
      expect([...(await tokenizer.encode(text))]).toEqual((await library.encode(text)).getIds());
  });

  it("takes as long for a long word as for others", async () => {
    const ids = [...(await (await openTokenizer("gpt2")).encode("a".repeat(1_000_000)))];
    expect(ids.length).toBeLessThan(500_000);
  });

  it("decodes a letter that was cut to U+FFFD, and nothing of it in the next text", async () => {
    const { encode, decode } = await openTokenizer("gpt2");
    const [first, ...more] = await encode("🦁");
    expect([await decode([first!]), await decode([198]), await decode(more)]).toEqual([
      "\ufffd",
      "\n",
      expect.stringMatching(/^\ufffd+$/),
    ]);
    expect(await decode([first!, ...more, 50256])).toBe("🦁<|endoftext|>");
    expect(await decode(await encode("\ufeffmark"))).toBe("\ufeffmark");
  });
});
