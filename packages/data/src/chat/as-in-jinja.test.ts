/** Expressions and statements of templates beside transformers' own Jinja, each as a template of its own. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { needsModules, runPython } from "../../../tensor/src/testing/python.ts";
import { exactJson } from "../documents/exact-json.ts";
import { compileChat, type Message } from "./render-chat.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-jinja-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const why = needsModules("transformers", "jinja2");

/** A row as its file has it: numbers are written in ways that JavaScript's JSON.parse does not keep. */
const row = String.raw`{"messages": [
  {"role": "user", "content": "Hi \u00e9\u007f\ud83d\ude00"},
  {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": {"name": "f", "arguments":
    {"t": 22.0, "n": 3, "big": 12345678901234567890, "less": -98765432109876543210, "e": 1e-7, "z": 1E+20, "neg": -0.0,
     "h": 0.1, "m": 1.5e16, "s": 0.0001, "whole": 9007199254740993, "b": [], "a": {}, "B": [true, null, 2.0]}}}]}],
  "tools": [{"type": "function", "function": {"name": "f", "parameters": {"minimum": 1.0, "maximum": 18446744073709551616,
    "items": {"type": "x"}, "enum": [0.50, 10, 1e3]}}}]}`;

/** What each template writes here and there, where they differ. An error is one, whatever its words. */
async function differing(templates: readonly string[]): Promise<unknown[]> {
  writeFileSync(join(folder, "templates.json"), JSON.stringify(templates));
  writeFileSync(join(folder, "row.json"), row);
  await runPython(`import json
from transformers.utils.chat_template_utils import render_jinja_template
row = json.load(open(${JSON.stringify(join(folder, "row.json"))}))
messages = [{key: value for key, value in m.items() if value is not None} for m in row["messages"]]  # as apply_chat_template
found = []
for template in json.load(open(${JSON.stringify(join(folder, "templates.json"))})):
    try:
        found.append(render_jinja_template([messages], tools=row["tools"], chat_template=template)[0][0])
    except Exception as error:
        found.append({"error": f"{type(error).__name__}: {error}"})
json.dump(found, open(${JSON.stringify(join(folder, "found.json"))}, "w"))`);
  const found = JSON.parse(readFileSync(join(folder, "found.json"), "utf8")) as (string | { error: string })[];
  const { messages, tools } = exactJson(row) as { messages: Message[]; tools: unknown };
  return templates.flatMap((template, i) => {
    let mine: string | { error: string };
    try {
      mine = compileChat(template, { special: {} })(messages, { prompt: false, tools }).text;
    } catch (error) {
      mine = { error: (error as Error).message };
    }
    const theirs = found[i]!;
    const equal = typeof theirs === "string" ? mine === theirs : typeof mine !== "string";
    return equal ? [] : [{ template, theirs, mine }];
  });
}

const ofNumbers = [
  "{{ messages[1].tool_calls[0].function.arguments | tojson }}",
  "{{ messages[1].tool_calls }}",
  "{{ tools | tojson(indent=2) }}",
  "{{ tools | tojson(separators=(',', ':'), sort_keys=true) }}",
  "{{ messages | tojson(ensure_ascii=true, indent=1) }}",
  "{{ messages[1].tool_calls[0].function.arguments | tojson(true, 0, none, true) }}",
  "{% for key, value in messages[1].tool_calls[0].function.arguments.items() %}{{ key }}={{ value }} {{ value | string }} {{ value ~ '' }} {{ value | tojson }};{% endfor %}",
  "{% for value in messages[1].tool_calls[0].function.arguments.values() %}{{ value is integer }} {{ value is number }} {{ value == 22 }} {{ value == 3.0 }};{% endfor %}",
  "{% set a = messages[1].tool_calls[0].function.arguments %}{{ a.big + 1 }} {{ a.big * a.less }} {{ a.big // 7 }} {{ a.less % 7 }} {{ -a.big }} {{ a.big - a.big }} {{ a.t + 1 }} {{ a.n * a.t }} {{ a.n / 2 }} {{ a.big > a.z }} {{ a.big == a.big + 0 }} {{ a.t // 7 }} {{ -a.t % 7 }} {{ a.t ** 2 }} {{ a.whole }} {{ a.n ** 50 }} {{ 2 ** -1 }} {{ a.neg }} {{ -a.neg }}",
  "{{ 1234567890123456789 }} {{ -12345678901234567890123 }} {{ 1.0 }} {{ 3.0 | tojson }} {{ [1.0, 2] | tojson }} {{ 1e3 }} {{ 1E16 }} {{ 1.5e-5 }} {{ 1e-5 }} {{ 2.5e+20 }} {{ 1_000 }} {{ 100000.0 }} {{ 1e15 }} {{ 1e22 | tojson }} {{ 123456789.0 * 10 }} {{ -1e3 }} {{ 0.1 + 0.2 }} {{ 1000000.0 * 1000000000000 }} {{ [-1e-7] }} {{ 1 - 2 }} {{ 1-2 }} {{ 5.0 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ 7.5 % -2 }} {{ true + 1 }} {{ -true }} {{ +2.0 }} {{ 4 / 2 }} {{ 1 // 0.3 }}",
  "{{ 1 / 0 }}",
  "{{ 1 % 0 }}",
  "{{ 0 ** -1 }}",
  "{{ nothing | tojson }}",
  "{{ ('a', 1) | tojson }}",
  "{{ -'a' }}",
];

it.skipIf(why)(`numbers are those of the row, and are counted with and written as Python does${why}`, async () => {
  expect(await differing(ofNumbers)).toEqual([]);
});
