import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { bytesJson } from "../tokenizers/byte-level-json.ts";
import { chatTemplate } from "./chat-template.ts";
import { compileChat } from "./render-chat.ts";
import { Renderer } from "./renderer.ts";

const root = mkdtempSync(join(tmpdir(), "terse-template-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
function folderWith(files: Readonly<Record<string, unknown>>): string {
  const folder = join(root, String(++folders));
  mkdirSync(join(folder, "additional_chat_templates"), { recursive: true });
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(bytesJson()));
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
  return folder;
}

describe("the chat template of a tokenizer", () => {
  it("is in tokenizer_config.json, one or several by name, or in files of their own, which come first", () => {
    const one = folderWith({ "tokenizer_config.json": { chat_template: "one" } });
    expect(chatTemplate(one)).toMatchObject({ text: "one", source: join(one, "tokenizer_config.json") });
    const named = [
      { name: "default", template: "first" },
      { name: "rag", template: "second" },
    ];
    const several = folderWith({ "tokenizer_config.json": { chat_template: named } });
    expect([chatTemplate(several).text, chatTemplate(several, "rag").text]).toEqual(["first", "second"]);
    const files = folderWith({
      "tokenizer_config.json": { chat_template: "old" },
      "chat_template.jinja": "own",
      "additional_chat_templates/tool_use.jinja": "tools",
    });
    expect([chatTemplate(files).text, chatTemplate(files, "tool_use").text]).toEqual(["own", "tools"]);
  });

  it("knows the special tokens by name", () => {
    const folder = folderWith({
      "chat_template.jinja": "x",
      "special_tokens_map.json": { bos_token: "old", pad_token: "<pad>" },
      "tokenizer_config.json": { bos_token: { content: "<s>", lstrip: false }, eos_token: "</s>", unk_token: null },
    });
    expect(chatTemplate(folder).special).toEqual({ bos_token: "<s>", eos_token: "</s>", pad_token: "<pad>" });
    expect(chatTemplate("gpt2", "chatml").special).toMatchObject({ eos_token: "<|endoftext|>" });
  });

  it("is refused with what to do where there is none", () => {
    const none = folderWith({});
    expect(() => chatTemplate(none)).toThrow(
      /has no chat template \(chat_template\.jinja, or .*name chatml, or the path of a template .* data\.template/,
    );
    expect(() => chatTemplate("bytes")).toThrow(
      /^bytes has no chat template .*name chatml, or the path of a template .* data\.template/,
    );
    const named = folderWith({ "tokenizer_config.json": { chat_template: [{ name: "rag", template: "x" }] } });
    expect(() => chatTemplate(named)).toThrow(/has several chat templates, and none is the default; .*: rag\.$/);
    expect(() => chatTemplate(named, "raq")).toThrow(
      /data\.template is raq, which is no file, and .* has the templates rag/,
    );
    const large = join(root, "large.jinja");
    writeFileSync(large, "x".repeat((1 << 20) + 1));
    expect(() => chatTemplate(none, large)).toThrow(
      /large\.jinja has 1048577 bytes, and a chat template has at most 1048576/,
    );
  });
});

describe("a renderer", () => {
  const rendering = async (text: string, { date, limit = 600 }: { date?: string; limit?: number } = {}) => {
    const renderer = new Renderer({ source: "given.jinja", text, special: {} }, { date, limit });
    try {
      const request = { messages: [{ role: "user", content: "a" }], beginnings: [{ count: 1, prompt: false }] };
      return (await renderer.render(request, "rows.jsonl, line 7"))[0]!.text;
    } finally {
      renderer.close();
    }
  };

  it.each([
    [
      "{{ raise_exception('roles must alternate') }}",
      /roles must alternate; correct the row, or name another template/,
    ],
    [
      "{% for m in messages %}",
      /line 7: the chat template given\.jinja fails: it is not valid, it ends before a tag .* closed; correct the template/,
    ],
    [
      "{{ messages[0].content | nothing }}",
      /fails: the filter 'nothing' of Jinja is not known here \(line 1 of the template\); correct the template, or name/,
    ],
    ["{{ 'a' + messages }}", /can only concatenate str \(not "list"\) to str/],
    [
      "{{ strftime_now('%d %b %Y') }}",
      /a run that goes on tomorrow would read other rows: set data\.date, such as \d{4}-/,
    ],
    [
      "{% set ns = namespace(x='ab') %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
      /Invalid string length/,
    ],
    ["{{ 'a' | indent(2000000, true) }}", /it writes 2000001 letters, and a row has at most 1048576/],
    ["{{ range(100001) | length }}", /a range has at most 100000 numbers, and not 100001; correct the row/],
    [
      "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
      /needs more than 512 MB of memory; correct the row/,
    ],
    ["{{ raise_exception('no ' * 1000000) }}", /fails: (no ){50,300}[no ]*…; correct the row/],
  ])("names row and template in one line: %s", async (text, message) => {
    const error = (await rendering(text).catch((error: unknown) => error)) as Error;
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^rows\.jsonl, line 7: the chat template given\.jinja fails: [^\n]*\.$/);
  });

  it("ends a template that does not end", async () => {
    const loop = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
    await expect(rendering(loop, { limit: 0.5 })).rejects.toThrow(
      /it had not ended after 0\.5 seconds; correct the row/,
    );
  });

  it("writes the date that is given as Python does", async () => {
    const formats = "%d %b %Y|%B %-d, %y|%A %a %j".replace(" %j", "").split("|");
    for (const [i, format] of formats.entries())
      expect(await rendering(`{{ strftime_now('${format}') }}`, { date: "2024-07-06" })).toBe(
        ["06 Jul 2024", "July 6, 24", "Saturday Sat"][i],
      );
  });

  it("writes values as Python does", () => {
    const write = (text: string, more: object = {}) =>
      compileChat(text, { special: {} })([{ role: "user", ...more }], { prompt: false }).text;
    expect(write("{{ true }} {{ none }} {{ nothing }} {{ 1.0 }} {{ 'a' ~ true }}")).toBe("True None  1.0 aTrue");
    expect(write("{{ [1, 'it\\'s', '\"', \"\\n\", (none, 2)] }}")).toBe(`[1, "it's", '"', '\\n', (None, 2)]`);
    expect(write("a\r\n{% if true %}\r\nb\rc{% endif %}\r\n")).toBe("a\nb\nc");
    expect(write("{{ ' \\n a \\n'.strip('\\n') }}|{{ ' a '.rstrip() }}|{{ 'xax' | trim('x') }}")).toBe(" \n a | a|a");
    expect(write("{{ '\ufeffa\u001c'.strip() | length }} {{ 'aB' | capitalize }} {{ -7 % 3 }} {{ 'ab' * 2 }}")).toBe(
      "2 Ab 2 abab",
    );
    expect(write("{{ '😀b'[0] }}{{ '😀b' | reverse }}{{ 'é😀' | list }}")).toBe("😀b😀['é', '😀']");
    expect(() => write("{{ messages[0].thoughts.text }}")).toThrow("'thoughts' is undefined");
    expect(write("{{ messages }}", { f: { a: ["é", false] } })).toBe("[{'role': 'user', 'f': {'a': ['é', False]}}]");
    expect(write("{{ '1' == 1 }} {{ [1] == [1] }} {{ none == nothing }} {{ [1] in [[1]] }}")).toBe(
      "False True False True",
    );
    expect(
      write("{% for x in 'ab' %}{{ x }}{% if x == 'a' %}{% set y = x %}!{% continue %}{% endif %}{{ y }}.{% endfor %}"),
    ).toBe("a!b.");
    expect(write("{% for x in range(5) %}{{ x }}{% if x == 2 %};{% break %}{% endif %},{% endfor %}")).toBe("0,1,2;");
    expect(write("{{ '😀'|length }}{% for x in nothing %}x{% else %}-{% endfor %}")).toBe("1-");
  });
});
