/** Every part of a tokenizer.json, and the forms that people use, beside Python's tokenizers. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { needsModules, runPython } from "../../../tensor/src/testing/python.ts";
import { DataError } from "../data-error.ts";
import { openTokenizer } from "./tokenizers.ts";

const texts = [
  "The quick brown fox's 1234567 numbers,  don't\n\n\tthey?",
  " naïve café, cafe\u0301, Ǆungla, İstanbul, ﬁne, ①②, Å ½ ",
  "日本語とカタカナ、中文字符。한국어 텍스트 ไทยไม่มีช่องว่าง",
  "हिन्दी में क्षत्रिय، العربية نصٌّ، עִבְרִית, Ελληνικά, Русский ёж",
  "🦁 cubs 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 \u{1f1eb}\u{1f1f7} 𝔘𝔫𝔦 𐍈",
  "a\r\nb\rc\u2028d\u0085e\u0000f\u0007g\u200bh\u00adi\ufeffj\ufffdk\u007f",
  "  two  spaces   three\u00a0no-break\u3000wide  \n \n end \n",
  "",
  " ",
  "\n",
  "<s>in the</s> text [MASK]and <mask> x[MASK].  <|endoftext|>word<|endoftext|>",
  `${"pneumono".repeat(60)} ${"ा".repeat(40)} ${"e\u0301".repeat(80)} ${"🦁".repeat(50)}`,
  "x = foo_bar(1,234.5) # CamelCase HTTPServer2 ___ --> `` '' “quotes” …—",
  "unk ▁ Ġ ## @@ </w> <0x0A> Ċ",
];

interface Found {
  readonly file: string;
  readonly ids: readonly (readonly number[] | null)[]; // null: the library gives up, in Python too
  readonly texts: readonly (string | null)[];
  readonly size: number;
}

const folder = mkdtempSync(join(tmpdir(), "terse-as-in-python-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const why = needsModules("tokenizers");
const script = readFileSync(new URL("../../tokenizers.py", import.meta.url), "utf8");

it.skipIf(why)(
  `each part of a tokenizer.json, and the form of each known model, gives Python's ids and texts${why}`,
  async () => {
    writeFileSync(join(folder, "texts.json"), JSON.stringify(texts));
    await runPython(`folder = ${JSON.stringify(folder)}\n${script}`);
    const found = JSON.parse(readFileSync(join(folder, "found.json"), "utf8")) as Record<string, Found>;
    expect(Object.keys(found).length).toBeGreaterThan(90);
    for (const [name, { file, ids, texts: decoded, size }] of Object.entries(found)) {
      const tokenizer = await openTokenizer(join(folder, file));
      expect([name, tokenizer.vocabulary]).toEqual([name, size]);
      for (const [i, text] of texts.entries()) {
        const [encoded, back] = [ids[i], decoded[i]];
        if (encoded) expect([name, text, ...(await tokenizer.encode(text))]).toEqual([name, text, ...encoded]);
        else await expect(tokenizer.encode(text), `${name} ${text}`).rejects.toThrow(DataError);
        if (encoded && back !== null) expect([name, await tokenizer.decode(encoded)]).toEqual([name, back]);
        else if (encoded) await expect(tokenizer.decode(encoded), `${name} ${text}`).rejects.toThrow(DataError);
      }
    }
  },
);

/** Tokenizers of well-known models. Without files, each has a vocabulary of its special tokens and a few letters. */
const classes =
  `Albert Bert BigBird CLIP Camembert CodeLlama Cohere Deberta DebertaV2 GPT2 GPTNeoX Gemma Llama MBart MPNet Nllb
  OpenAIGPT Qwen2 RemBert Roberta T5 Whisper XGLM XLMRoberta XLNet`.split(/\s+/);

const unseen = needsModules("tokenizers", "transformers");

it.skipIf(unseen)(
  `what transformers saves of each class of tokenizers gives its ids, and its end of a text${unseen}`,
  async () => {
    writeFileSync(join(folder, "texts.json"), JSON.stringify(texts));
    await runPython(`
import transformers
from tokenizers import Tokenizer
folder, classes = ${JSON.stringify(folder)}, json.loads(${JSON.stringify(JSON.stringify(classes))})
texts, found = json.load(open(os.path.join(folder, "texts.json"))), {}
def ids(t, text):
    try: return t.encode(text, add_special_tokens=False).ids
    except BaseException: return None  # such as a vocabulary without its unknown token
for name in classes:
    saved, tokenizer = os.path.join(folder, name), getattr(transformers, name + "Tokenizer")()
    tokenizer.save_pretrained(saved)
    t = Tokenizer.from_file(os.path.join(saved, "tokenizer.json"))
    t.no_truncation(); t.no_padding()
    found[name] = {"ids": [ids(t, text) for text in texts], "end": tokenizer.eos_token_id}
json.dump(found, open(os.path.join(folder, "found.json"), "w"))`);
    const found = JSON.parse(readFileSync(join(folder, "found.json"), "utf8")) as Record<
      string,
      { ids: (number[] | null)[]; end: number | null }
    >;
    for (const [name, { ids, end }] of Object.entries(found)) {
      const tokenizer = await openTokenizer(join(folder, name));
      if (end !== null) expect([name, tokenizer.endOfText]).toEqual([name, end]);
      for (const [i, text] of texts.entries()) {
        const encoded = ids[i];
        if (encoded) expect([name, text, ...(await tokenizer.encode(text))]).toEqual([name, text, ...encoded]);
        else await expect(tokenizer.encode(text), `${name} ${text}`).rejects.toThrow(DataError);
      }
    }
    expect(Object.keys(found)).toEqual(classes);
    const whole = Object.values(found).filter(({ ids }) => ids.every((each) => each !== null));
    expect(whole.length).toBeGreaterThan(20);
  },
);
