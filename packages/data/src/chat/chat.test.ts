import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TextBatch } from "../batch.ts";
import { datasets } from "../datasets.ts";
import { datasetContract } from "../testing/dataset-contract.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-chat-"));
  mkdirSync(join(folder, "rows"));
  const texts = (count: number, from: number) =>
    Array.from({ length: count }, (_, i) => ({ prompt: `${from + i}:`, completion: "the same long answer" }));
  writeFileSync(join(folder, "rows", "train.jsonl"), lines(texts(23, 10)));
  writeFileSync(join(folder, "rows", "validation.jsonl"), lines(texts(11, 50)));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const lines = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const entry = datasets.chat;
const defaults = { tokenizer: "bytes", loss: "answers", packing: "none", validationFraction: 0 };
const one = { batchSize: 1, seed: 0, rank: 0, ranks: 1 };
const open = (given: object = {}, more: object = {}) =>
  entry.open({ ...defaults, path: join(folder, "rows"), blockSize: 16, ...more }, { ...one, ...given });

let files = 0;
const file = (content: string | Uint8Array, ending = ".jsonl") => {
  const path = join(folder, `${++files}${ending}`);
  writeFileSync(path, content);
  return path;
};

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const marked = (next: readonly number[]) =>
  next.map((token) => (token < 0 ? "·" : String.fromCharCode(token))).join("");

/** The text of the first row, and what of it is learned, in the order of the file. */
async function rowsOf(rows: readonly unknown[] | string, more: object = {}, blockSize = 200) {
  const path = typeof rows === "string" ? rows : file(lines(rows));
  const data = await open({}, { path, template: "chatml", blockSize, ...more });
  const seen: [text: string, learned: string][] = [];
  for (let i = 0; i < data.trainingSamples; i++) {
    const { tokens, next } = (await data.next())[0] as TextBatch;
    const [ids, after] = await Promise.all(
      [tokens, next].map(async (each) => Array.from(await each.toTypedArray(), Number)),
    );
    seen.push([String.fromCharCode(...ids!), marked(after!)]);
  }
  await data.close();
  return { rows: seen.sort(), data };
}

describe("chat", () => {
  datasetContract(open, { samples: 23, fields: entry.fields });

  describe("packed", () => {
    const packed = (given: object, more: object = {}) =>
      open(given, { path: join(folder, "packed"), packing: "best-fit", ...more });
    beforeAll(() => {
      mkdirSync(join(folder, "packed"));
      const rows = (count: number, from: number) =>
        Array.from({ length: count }, (_, i) => ({ prompt: `${from + i}:`, completion: "abcde" })); // 8 tokens of 16
      writeFileSync(join(folder, "packed", "train.jsonl"), lines(rows(46, 10)));
      writeFileSync(join(folder, "packed", "validation.jsonl"), lines(rows(11, 60)));
    });
    datasetContract(packed, { samples: 23, fields: entry.fields });

    it("counts places in each row, and no row begins with what is learned", async () => {
      const data = await packed({});
      const { tokens, next, positions } = (await data.next())[0] as TextBatch;
      const numbers = async (tensor: typeof tokens) => Array.from(await tensor.toTypedArray(), Number);
      expect(String.fromCharCode(...(await numbers(tokens)))).toMatch(/^\d\d:abcde\d\d:abcde$/);
      expect(marked(await numbers(next))).toBe("··abcde···abcde·");
      expect(await numbers(positions!)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
      for await (const batch of data.validation({ windows: 1, sharded: false }))
        expect((batch as TextBatch).tokens.shape).toEqual([1, 8]); // a row alone
      await data.close();
    });
  });

  it("learns what the assistant says, by the marks of the template, or all", async () => {
    const messages = [user("hi"), assistant("yo"), user("?"), assistant("ok")];
    const text =
      "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyo<|im_end|>\n<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\nok<|im_end|>\n";
    const learned = (answer: string) => text.indexOf(`${answer}<|im_end|>`);
    const [yo, ok] = [learned("yo"), learned("ok")];
    const mask = Array.from(text, (letter, i) => ((i >= yo && i < yo + 12) || (i >= ok && i < ok + 12) ? letter : "·"));
    const next = `${mask.slice(1).join("")}·`;
    expect((await rowsOf([{ messages }])).rows).toEqual([[text, next]]);
    expect((await rowsOf([{ messages }], { loss: "all" })).rows).toEqual([[text, `${text.slice(1)}·`]]);
  });

  it("finds the answers where a template marks none: from what asks for one to what ends with it", async () => {
    const template = file(
      "{# no {% generation %} #}{% for m in messages %}[{{ m.role[0] }}]{{ m.content }}{{ eos_token }};{% endfor %}{% if add_generation_prompt %}[a]{% endif %}",
      ".jinja",
    );
    const messages = [user("hi"), assistant("yo"), user("?"), assistant("ok")];
    expect((await rowsOf([{ messages }], { template })).rows).toEqual([
      ["[u]hi;[a]yo;[u]?;[a]ok;", learnedIn("[u]hi;[a]yo;[u]?;[a]ok;", ["yo;", "ok;"])],
    ]);
  });

  it("finds an answer that a template writes without its thoughts once more messages follow", async () => {
    const template = file(
      "{% for m in messages %}[{{ m.role[0] }}]{{ m.content if loop.last else m.content.split('>')[-1] }}.;{% endfor %}{% if add_generation_prompt %}[a]{% endif %}",
      ".jinja",
    );
    const messages = [user("hi"), assistant("<hm>yo"), user("?"), assistant("<so>ok")];
    const { rows, data } = await rowsOf([{ messages }], { template });
    const text = "[u]hi.;[a]yo.;[u]?.;[a]<so>ok.;";
    expect(rows).toEqual([[text, learnedIn(text, ["yo.;", "<so>ok.;"])]]);
    expect(data.remarks!.filter((line) => line.includes("not learned"))).toEqual([]);
  });

  it("looks for no answers behind what is cut off: each would be rendered with all that is before it", async () => {
    const template = file(
      "{% if messages|length > 20 and messages|length < 40 %}{{ raise_exception('too far') }}{% endif %}{% for m in messages %}[{{ m.role[0] }}]{{ m.content }};{% endfor %}{% if add_generation_prompt %}[a]{% endif %}",
      ".jinja",
    );
    const messages = Array.from({ length: 20 }, (_, i) => [user("hi"), assistant(`yo${i}`)]).flat();
    const { rows } = await rowsOf([{ messages }], { template }, 22);
    expect(rows).toEqual([["[u]hi;[a]yo0;[u]hi;[a]", "········yo0;·········"]].map(([a, b]) => [a, `${b}·`]));
  });

  it("gives a template what the row says for it, and does not ask it for an empty conversation", async () => {
    const template = file(
      "{{ messages[0].content[0] }}{% if enable_thinking %}T{% endif %};{% for m in messages %}{{ m.content }};{% endfor %}",
      ".jinja",
    );
    const messages = [user("hi"), assistant("yo")];
    const rows = [
      { messages },
      { messages, chat_template_kwargs: { enable_thinking: true } },
      { messages, chat_template_kwargs: '{"enable_thinking": true}' },
      { messages: [] },
    ];
    const found = await rowsOf(rows, { template });
    expect(found.rows.map(([text]) => text)).toEqual(["h;hi;yo;", "hT;hi;yo;", "hT;hi;yo;"]);
    expect(found.data.inventory!.passedOver).toEqual(["1 row without an answer"]);
  });

  it("says how many answers a template writes in another way where more follows, and does not learn them", async () => {
    const template = file(
      "{% for m in messages %}[{{ m.role[0] }}]{% if m.role == 'user' or loop.last %}{{ m.content }}{% else %}…{% endif %};{% endfor %}{% if add_generation_prompt %}[a]{% endif %}",
      ".jinja",
    );
    const { data } = await rowsOf([{ messages: [user("hi"), assistant("yo"), user("?"), assistant("ok")] }], {
      template,
    });
    expect(data.remarks).toContain(
      "data: 1 answer is not learned, because the template writes it in another way when more messages follow; a template with {% generation %} marks it",
    );
  });

  it("says that a template writes no answers", async () => {
    const template = file(
      "{% for m in messages %}{% if m.role == 'user' or m.content == 'ok' %}{{ m.content }};{% endif %}{% endfor %}",
      ".jinja",
    );
    const [two, one] = [
      [user("hi"), assistant("yo"), user("?"), assistant("ok")],
      [user("hi"), assistant("yo")],
    ];
    const { data } = await rowsOf([{ messages: two }], { template });
    expect(data.remarks).toContain("data: 1 answer is not learned, because the template does not write it");
    await expect(rowsOf([{ messages: one }], { template })).rejects.toThrow(
      /has answers, and the chat template .*\.jinja writes none of them; name another template with data\.template\.$/,
    );
  });

  it("names what follows a prompt, and what ends an answer", async () => {
    const messages = [user("hi"), assistant("yo"), user("?"), assistant("ok")];
    const { data } = await rowsOf([{ messages }]);
    expect([data.prompt, data.ends]).toEqual([
      "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
      [[...Buffer.from("<|im_end|>")]],
    ]);
    const texts = await rowsOf([{ prompt: "a ", completion: "b" }], { endOfText: ";" });
    expect([texts.rows[0], texts.data.prompt, texts.data.ends]).toEqual([["a b;", "·b;·"], "a ", [[59]]]);
  });

  it("reads each form of rows, and keys that are given", async () => {
    const text = "<|im_start|>user\na\n\nb<|im_end|>\n<|im_start|>assistant\nc<|im_end|>\n";
    const forms: [row: object, more?: object][] = [
      [{ instruction: "a", input: "b", output: "c" }],
      [
        { q: "a", beside: "b", a: "c" },
        { instruction: "q", input: "beside", output: "a" },
      ],
      [{ messages: [user("a\n\nb"), assistant("c")] }],
      [
        {
          messages: [
            user([
              { type: "text", text: "a\n\n" },
              { type: "text", text: "b" },
            ]),
            assistant("c"),
          ],
        },
      ],
      [{ chat: [user("a\n\nb"), assistant("c")] }, { messages: "chat" }],
      [
        {
          conversations: [
            { from: "human", value: "a\n\nb" },
            { from: "gpt", value: "c" },
          ],
        },
      ],
      [{ prompt: [user("a\n\nb")], completion: [assistant("c")] }],
    ];
    for (const [row, more] of forms) {
      const { rows } = await rowsOf([row], more);
      expect([row, rows[0]![0], rows[0]![1].replaceAll("·", "").trim()]).toEqual([
        row,
        text,
        row === forms[6]![0] ? "c<|im_end|>" : "c<|im_end|>",
      ]);
    }
    expect((await rowsOf([{ prompt: "a ", completion: "b" }])).rows).toEqual([["a b", "·b·"]]);
    const { data } = await rowsOf([{ prompt: "a ", completion: "b" }]);
    expect(data.remarks).toEqual([
      "data: 1 row of prompt and completion without a template, and with no token that ends a text; the answers are learned",
      "data.template changes nothing: a prompt and its completion that are texts have none; write them as messages",
    ]);
    expect((await rowsOf([{ q: "a ", a: "b" }], { prompt: "q", completion: "a" })).rows).toEqual([["a b", "·b·"]]);
  });

  it("reads jsonl, json and parquet, packed by gzip and zstd too, and says what it leaves out of a folder", async () => {
    const row = { messages: [user("a"), assistant("b")] };
    const same = (await rowsOf([row])).rows;
    const column = { name: "messages", data: [row.messages], type: "JSON" as const };
    const parquet = file(new Uint8Array(parquetWriteBuffer({ columnData: [column] })), ".parquet");
    for (const path of [
      file(JSON.stringify([row]), ".json"),
      file(gzipSync(lines([row])), ".jsonl.gz"),
      file(zstdCompressSync(lines([row])), ".jsonl.zst"),
      parquet,
    ])
      expect([path, (await rowsOf(path)).rows]).toEqual([path, same]);
    await expect(rowsOf(file("a,b\n", ".csv"))).rejects.toThrow(
      /is no \.jsonl, \.json or \.parquet file of rows; name one/,
    );
    const path = join(folder, "mixed");
    mkdirSync(path);
    for (const name of ["train.jsonl", "notes.txt"]) writeFileSync(join(path, name), lines([row]));
    const bzip2 = Buffer.from("425a683931415926535900", "hex");
    writeFileSync(join(path, "more.jsonl.bz2"), bzip2);
    expect((await rowsOf(path)).data.inventory!.leftOut).toMatchObject([
      { names: ["more.jsonl.bz2"], why: expect.stringMatching(/^packed by bzip2, which is not read/) },
      { names: ["notes.txt"], why: "no .jsonl, .json or .parquet" },
    ]);
    await expect(rowsOf(file(bzip2, ".jsonl.bz2"))).rejects.toThrow(/\.bz2 is packed by bzip2, which is not read, as/);
  });

  it("cuts long rows at their end, and leaves out rows without an answer, and says how many", async () => {
    const { rows, data } = await rowsOf(
      [
        { messages: [user("a"), assistant("b")] },
        { messages: [user("a"), assistant("a long answer, which is cut")] },
        { messages: [user("the answer to this comes too late"), assistant("b")] },
        { messages: [user("nobody answers")] },
        { messages: [] },
      ],
      {},
      60,
    );
    expect(rows.map(([text]) => text.length)).toEqual([60, 60]);
    expect(rows.map(([, learned]) => learned).sort()).toEqual([
      `${"·".repeat(50)}a long an·`,
      `${"·".repeat(50)}b<|im_end·`,
    ]);
    expect(data.inventory!.passedOver).toEqual([
      "2 rows without an answer",
      "1 row whose answer begins after 60 tokens",
    ]);
    expect(data.remarks).toEqual([
      "data: 5 rows of messages by the template chatml; the answers that it marks are learned",
      "data: bytes has no tokens <|im_start|> and <|im_end|>, and writes each as several",
      "data: 2 rows of more than 60 tokens are cut at their end",
    ]);
    await expect(rowsOf([{ messages: [user("a")] }])).rejects.toThrow(
      /has no rows with an answer to train on; the roles of messages are user, and an answer's is assistant\.$/,
    );
    const bot = [user("a"), { role: "bot", content: "b" }];
    await expect(rowsOf([{ messages: bot }])).rejects.toThrow(
      /the roles of messages are user, bot, and an answer's is/,
    );
  });

  it("says of a system text or a history beside a conversation that it is not read", async () => {
    const messages = [user("a"), assistant("b")];
    const rows = [
      { messages, system: "be kind" },
      { messages, system: "be kind", history: [["a", "b"]] },
    ];
    const passedOver = async (rows: object[], options = {}) => (await rowsOf(rows, options)).data.inventory!.passedOver;
    expect(await passedOver([...rows, { messages, system: "", history: [] }, { messages }])).toEqual([
      "system of 2 rows: write it as messages",
      "history of 1 row: write it as messages",
    ]);
    const named = { instruction: "system", output: "said" };
    expect(await passedOver([{ system: "a", said: "b" }], named)).toBeUndefined();
  });

  it("says of answers that ask not to be learned, as OpenAI's and axolotl's rows do, that they are learned all the same", async () => {
    const passedOver = async (...rows: object[]) =>
      (await rowsOf(rows.map((more) => ({ messages: [user("a"), { ...assistant("b"), ...more }] })))).data.inventory!
        .passedOver;
    const rest =
      "which are learned all the same: put what is not to be learned into prompt, and the answer that is into completion";
    expect(await passedOver({ weight: 0 }, { weight: 0 }, { weight: 1 }, { train: false }, { train: true })).toEqual([
      `weight of answers in 2 rows, ${rest}`,
      `train of answers in 1 row, ${rest}`,
    ]);
    expect(await passedOver({ weight: 1, train: true }, { weight: null, train: null })).toBeUndefined();
    const prompt = [user("a"), { ...assistant("b"), weight: 0 }, user("c")];
    expect((await rowsOf([{ prompt, completion: [assistant("d")] }])).data.inventory!.passedOver).toBeUndefined();
  });

  it("weighs batches by what they predict, so that a step's mean is that of all its tokens on any number of ranks", async () => {
    const rows = [1, 2, 3, 10].map((n) => ({ prompt: "a", completion: "b".repeat(n) }));
    const path = file(lines(rows));
    const sharesOf = async (ranks: number, count: number) => {
      const shares: [targets: number, weight: number, share: number][] = [];
      for (let rank = 0; rank < ranks; rank++) {
        const data = await open({ rank, ranks, accumulate: count }, { path });
        for (const batch of await data.next(count)) {
          const next = await (batch as TextBatch).next.toTypedArray();
          shares.push([Array.from(next, Number).filter((token) => token >= 0).length, batch.weight, batch.share]);
        }
        await data.close();
      }
      return shares.sort((a, b) => a[0] - b[0]);
    };
    const expected = [1, 2, 3, 10].map((n) => [n, n, n / 4]); // a mean of 4 tokens
    expect(await sharesOf(1, 4)).toEqual(expected);
    expect(await sharesOf(2, 2)).toEqual(expected);
    expect(await sharesOf(4, 1)).toEqual(expected);
    const data = await open({ batchSize: 3 }, { path, validationFraction: 0.5 });
    const weights: number[] = [];
    for await (const batch of data.validation({ windows: 4, sharded: false })) weights.push(batch.weight);
    expect(weights).toEqual([11]); // of the first and the last row
    await data.close();
  });

  it.each([
    [{ messages: "hi" }, /1\.jsonl, line 1 has a string in messages, and no list of messages/],
    [{ messages: ["hi"] }, /line 1, message 1 of messages is a string and no object with role and content/],
    [{ messages: [{ content: "a" }] }, /message 1 of messages has no role, only content; correct it/],
    [
      { messages: [user([{ type: "image" }])] },
      /message 1 of messages has image in its content, and only texts are read/,
    ],
    [{ messages: [user(3)] }, /has a number as its content, and no text/],
    [
      { prompt: "a", completion: [assistant("b")] },
      /has a string in prompt and a list in completion; both are texts, or/,
    ],
    [
      { text: "a" },
      /has no known form, only text: rows have messages, .* Texts alone are read with data\.name: text\./,
    ],
    [{ instruction: "a", output: 3 }, /has a number in output, and no text; correct the row, or name another key/],
    ["text", /is a string and no object with keys/],
    [{ messages: [user("a"), assistant("b\ud83d")] }, /line 1 has half of a letter \(a surrogate without its other/],
    [{ prompt: "a", completion: "\udc00" }, /line 1 has half of a letter/],
    [{ messages: [user("a")], tools: "{" }, /has tools that are no JSON/],
    [{ messages: [user("a")], chat_template_kwargs: [1] }, /has a list in chat_template_kwargs, and no object with/],
  ])("refuses %j", async (row, message) => {
    await expect(rowsOf(file(lines([row]), "-1.jsonl"))).rejects.toThrow(message);
  });

  it("refuses a row of a million letters", async () => {
    await expect(rowsOf([{ prompt: "a".repeat(1 << 20), completion: "b" }])).rejects.toThrow(
      /line 1 has 1048577 letters, and a row has at most 1048576; divide it, or remove it/,
    );
  });

  it("refuses keys of two forms", async () => {
    const row = { messages: [user("a"), assistant("b")] };
    await expect(rowsOf([row], { messages: "a", output: "b" })).rejects.toThrow(
      /data\.messages and data\.output belong to different forms of rows; give data\.messages, or data\.prompt and/,
    );
  });
});

function learnedIn(text: string, answers: readonly string[]): string {
  const mask = new Array<string>(text.length).fill("·");
  for (const answer of answers)
    for (let i = text.indexOf(answer); i < text.indexOf(answer) + answer.length; i++) mask[i] = text[i]!;
  return `${mask.slice(1).join("")}·`;
}
