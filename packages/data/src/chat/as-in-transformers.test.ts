/** Chat templates of many models beside transformers' apply_chat_template: token for token, and mask for mask. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { needsModules, runPython } from "../../../tensor/src/testing/python.ts";
import { exactJson } from "../documents/read-json.ts";
import { compileChat, type Message } from "./render-chat.ts";
import { openRowTokenizer, type RowTokenizer } from "./row-tokenizer.ts";

const said =
  (role: string) =>
  (content: string, more: object = {}): Message => ({ role, content, ...more });
const [user, assistant, system] = [said("user"), said("assistant"), said("system")];
const chats: readonly (readonly Message[])[] = [
  [user("Hi"), assistant("Hello 😀")],
  [system("Be  brief. "), user(" What is <b>1+1</b>?\n"), assistant("2")],
  [
    user("a"),
    assistant("<think>\nwell\n</think>\n\nb"),
    user("c 日本語"),
    assistant("d ", { reasoning_content: "so" }),
  ],
  [user("nobody answers")],
  [system("x & 'y' \"z\""), user("é"), assistant("e\u0301"), user("again"), assistant("fin\n")],
  [user("</s> <s>[INST] in a text"), assistant("<|im_end|> too")],
  [
    user("weather?"),
    assistant("", {
      tool_calls: [
        { type: "function", function: { name: "sky", arguments: { at: "Rom", n: 3, ok: true, height: 0.5 } } },
      ],
    }),
    { role: "tool", name: "sky", content: "22 °C" },
    assistant("warm"),
  ],
];

interface Found {
  readonly name: string;
  readonly chat: number;
  readonly prompt: boolean;
  readonly tokenizer: "byte level" | "pieces";
  readonly ids?: readonly number[];
  readonly mask?: readonly number[];
  readonly error?: string;
}

/** Templates that read lists of texts and pictures: here a message has a text. */
const ofPictures = /smolvlm|idefics3|llava_next/;

const folder = mkdtempSync(join(tmpdir(), "terse-chat-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const why = needsModules("transformers", "jinja2");
const script = readFileSync(new URL("../../chat.py", import.meta.url), "utf8");

it.skipIf(why)(`the template of each model gives transformers' ids and masks${why}`, async () => {
  writeFileSync(join(folder, "chats.json"), JSON.stringify(chats));
  await runPython(`folder = ${JSON.stringify(folder)}\n${script}`);
  const { templates, found } = JSON.parse(readFileSync(join(folder, "found.json"), "utf8")) as {
    templates: Record<string, string>;
    found: readonly Found[];
  };
  expect(Object.keys(templates).length).toBeGreaterThan(20);
  const tokenizers: Record<string, RowTokenizer> = {
    "byte level": await openRowTokenizer(join(folder, "bytes")),
    pieces: await openRowTokenizer(join(folder, "pieces")),
  };
  const special = {
    "byte level": { bos_token: "<s>", eos_token: "</s>", unk_token: "<unk>", pad_token: "<unk>" },
    pieces: { bos_token: "<s>", eos_token: "</s>" },
  };
  const today = new Date();
  const date = [today.getFullYear(), today.getMonth() + 1, today.getDate()]
    .map((n) => String(n).padStart(2, "0"))
    .join("-");
  const rows = exactJson(JSON.stringify(chats)) as typeof chats;
  const differing: unknown[] = [];
  let same = 0;
  for (const { name, chat, prompt, tokenizer, ids, mask, error } of found) {
    if (ofPictures.test(name)) continue;
    let mine: { ids?: number[]; mask?: number[]; error?: string };
    try {
      const { text, answers } = compileChat(templates[name]!, { special: special[tokenizer], date })(rows[chat]!, {
        prompt,
      });
      const tokens = await tokenizers[tokenizer]!.encodeWhole(text, { spans: answers });
      mine = { ids: [...tokens.ids], mask: [...tokens.marked] };
    } catch (thrown) {
      mine = { error: (thrown as Error).message };
    }
    const equal =
      error === undefined ? JSON.stringify(mine) === JSON.stringify({ ids, mask }) : mine.error !== undefined;
    if (equal) same++;
    else
      differing.push([
        name,
        chat,
        prompt,
        tokenizer,
        error ?? ids?.join(),
        mine.error ?? mine.ids?.join(),
        mask?.join(""),
        mine.mask?.join(""),
      ]);
  }
  expect(differing).toEqual([]);
  expect(same).toBeGreaterThan(500);
});
