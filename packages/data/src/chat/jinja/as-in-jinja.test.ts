/** Expressions and statements of templates beside transformers' own Jinja, each as a template of its own. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { needsModules, runPython } from "../../../../tensor/src/testing/python.ts";
import { exactJson } from "../../documents/read-json.ts";
import { rowForm } from "../chat-rows.ts";
import { compileChat, type Message } from "../render-chat.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-jinja-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const why = needsModules("transformers", "jinja2");

/** A row as its file has it: numbers are written in ways that JavaScript's JSON.parse does not keep. */
const row = String.raw`{"messages": [
  {"role": "user", "content": "Hi \u00e9\u007f\ud83d\ude00"},
  {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": {"name": "f", "arguments":
    {"t": 22.0, "n": 3, "big": 12345678901234567890, "less": -98765432109876543210, "e": 1e-7, "z": 1E+20, "neg": -0.0,
     "h": 0.1, "m": 1.5e16, "s": 0.0001, "whole": 9007199254740993, "b": [], "a": {}, "10": {"b": 1, "2": "\"3\": 4", "1": []}, "9": 0, "B": [true, null, 2.0]}}}]}],
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

const ofValues = [
  "{{ {'a': 1, 'b': 2}.items() | list }} {{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(false, 'value', reverse=true) }} {{ {'b': 1, 'a': 2} | list }} {{ {'a': 1}.items() }} {{ {'a': 1}.keys() }} {{ {'a': 1}.values() }} {{ {'a': 1} | items | list }}",
  "{{ 'tEST' | title }} {{ 'tEST aB'.title() }} {{ \"they're bill's (ab) x-y\" | title }} {{ \"they're bill's x-y ß ǆa\".title() }} {{ 'ǆa' | title }} {{ 'ǆA' | capitalize }} {{ 'ßA'.capitalize() }}",
  "{{ (1, 2, 3) | list }} {{ ('a',) }} {{ () }} {{ ('a', 'b',) }} {{ (1, 2)[1:] }} {{ (1,) + (2,) }} {{ [1, 2] * 2 }} {{ 2 * (1,) }} {{ (1, 2) == [1, 2] }}",
  "{{ 'a\x85b c\ufeffd'.split() }} {{ ' a  b c '.split(none, 1) }} {{ ' a b '.split() | length }} {{ ''.split() }} {{ 'a,b,c'.split(',', maxsplit=1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ ' a  b '.rsplit(none, 1) }} {{ 'a--b'.split('--') }}",
  "{{ 'a'.split('') }}",
  "{{ tools[0].function.parameters.items is callable }} {{ tools[0].function.parameters['items'] }} {{ tools[0].function.parameters.items.type is defined }} {{ tools[0].function.parameters['keys'] is callable }} {{ tools[0].function.parameters.enum }} {{ tools[0].nothing is defined }}",
  "{% if messages | selectattr('role', 'equalto', 'nobody') %}a generator is true{% endif %}{% set s = messages | map(attribute='role') %}{{ s | first }}{{ s | list }}{{ s | list }} {{ [] | select | list | length }} {{ [1, 2] | reverse | list }}",
  "{{ messages | selectattr('role') | length }}",
  "{{ messages | map(attribute='role') | last }}",
  "{{ '3.7' | int }} {{ 3.7 | int }} {{ -3.7 | int }} {{ '12a' | int }} {{ ' 7_0 ' | int }} {{ 'x' | int(9) }} {{ 'x' | int(default=none) }} {{ '1e3' | float }} {{ 'x' | float }} {{ 3 | float }} {{ true | int }} {{ none | int }} {{ 12345678901234567890.0 | int }} {{ '12345678901234567891' | int }} {{ -3 | abs }} {{ -3.5 | abs }}",
  "{{ 3.14159 | round(2) }} {{ 2.675 | round(2) }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 0.125 | round(2) }} {{ 3 | round }} {{ 2.1 | round(method='ceil') }} {{ 2.17 | round(1, 'floor') }} {{ -2.5 | round }} {{ 1e-9 | round(3) }}",
  "{{ 1 is number }} {{ true is number }} {{ true is integer }} {{ 1.0 is float }} {{ 1 is float }} {{ {} is iterable }} {{ 1 is iterable }} {{ {} is sequence }} {{ nothing is iterable }} {{ messages[0] is mapping }} {{ (1,) is sequence }} {{ 'aB' is lower }} {{ '1' is upper }} {{ range is callable }} {{ dict is defined }} {{ 3 is odd }} {{ -2 is even }} {{ none is sameas none }}",
  "{{ true | string }} {{ none | string }} {{ nothing | string }}. {{ 5 | upper }} {{ none | upper }} {{ nothing | trim }}. {{ 1.0 | string + 'x' }} {{ [1.0, [2]] | string }} {{ none | default('d') }} {{ none | default('d', true) }} {{ nothing | d(1.0) }} {{ '' | default('d', boolean=true) }}",
  "{{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ [none] }} {{ [1, 'a', 1.0, true, none, ('b',), {'k': 2.0}] | join(', ') }} {{ 'ab' | join('-') }} {{ messages | join(',', attribute='role') }}",
  "{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A', 'c'] | sort(case_sensitive=true) }} {{ messages | sort(attribute='role') | map(attribute='role') | list }} {{ ['B', 'a', 'b', 1.0, 1] | unique | list }} {{ [2, 1.5] | min }} {{ ['a', 'B'] | max }} {{ [] | min }}. {{ ['\ufb01', '😀'] | sort }}",
  "{{ [1, 'a'] | sort }}",
  "{% macro f(x, y=2) -%} {{ x }}{{ y }} {%- endmacro %}{{ f(1) }}{{ f(1, y=3) }}{{ f(x='a') }}{% macro g(x) %}{{ caller(x) }}{% endmacro %}{% call(z) g(3) %}[{{ z }}]{% endcall %}",
  "{% macro f() %}{{ x }}{{ y }}{{ caller is defined }}{% endmacro %}{% set y = 2 %}{% for x in [1] %}{{ f() }}{% endfor %}{% macro h() %}{{ f() }}{{ caller() }}{% endmacro %}{% call h() %}{{ y }}{% endcall %}{% macro r(n) %}{{ n }}{% if n %}{{ r(n - 1) }}{% endif %}{% endmacro %}{{ r(3) }}",
  "{{ '\"a\": ' + ('<' | safe) + ' & ' }} {{ ('<' | e) + '>' }} {{ '<' ~ ('<' | e) }} {{ '<' | e | e }} {{ messages | tojson | safe }}",
  "{% set ns = namespace(a=0, b='') %}{% for m in messages %}{% set ns.a = ns.a + 1 %}{% set ns.b = ns.b ~ m.role[0] %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns }}",
  "{{ 'abc'[-1] }} {{ 'abcdef'[::2] }} {{ 'abc'[::-1] }} {{ [1, 2, 3][5:] }} {{ [1, 2, 3][-2:] }} {{ '😀ab'[:2] }} {{ [1, 2, 3][none:2] }} {{ [1, 2, 3][7] }}. {{ [1, 2][nothing] }}. {{ 'ab'['a'] }}. {{ [1, 2][true] }} {{ -0.0 // 1 }} {{ -0.5 // 1 }} {{ messages[0][0] }}. {{ 'abc'[1:-1] }} {{ [1,2,3,4,5][4:1:-2] }}",
];

it.skipIf(why)(`values, and what they are asked, are Python's${why}`, async () => {
  expect(await differing(ofValues)).toEqual([]);
});

const ofLanguage = [
  "{% with y = 3, z = [1, (2, 3)] %}{{ y }}{{ z }}{% set y = 4 %}{{ y }}{% endwith %}{{ y is defined }}{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}",
  "{% set x = 1 %}{% with x = x + 1 %}{{ x }}{% endwith %}{{ x }}{% for i in [1, 2] %}{% with a = loop.index %}{{ a }}{% if i == 1 %}{% continue %}{% endif %}{{ loop.last }}{% endwith %}{% endfor %}",
  "{% raw %}{{ x }}{% if %} 'q' \\ {# c #}{% endraw %}z\n  {% raw %}\n  a\n  {% endraw %}\nb {%- raw -%}  c  {%- endraw -%}  d",
  "{%+ if true %} a{%+ endif %}\n  {%+ if true -%}\n  b\n  {%- endif +%}\nc\n  {% if true +%}\nd\n  {%+ endif %}\ne",
  "{% for a, b in [(1, 2), [3, 4], 'xy'] %}{{ a }}{{ b }};{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}{% for k, v in {'a': 1} | dictsort %}{{ k }}{{ v }}{% endfor %}{% for k in {'a': 1} %}{{ k }}{% endfor %}",
  "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
  "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem.role if loop.previtem is defined }}{{ loop.nextitem.role if loop.nextitem is defined }}{{ loop.cycle('a', 'b', 'c') }}{{ loop.depth }};{% endfor %}",
  "{% for i in range(6) if i % 2 == 0 %}{{ i }}{{ loop.index }}{{ loop.length }}{% else %}none{% endfor %}{% for i in [] %}x{% else %}E{% endfor %}{% for i in [1, 2] if i > 5 %}x{% else %}F{% endfor %}{% for i in [1] %}{% continue %}{% else %}G{% endfor %}",
  "{{ ' a , b'.split(',') | map('trim') | list }} {{ ['a', 'b'] | map('upper') | join }} {{ [['a', 1], ['b', 2]] | map('first') | list }} {{ messages | map('length') | list }} {{ ['a b', 'c'] | map('replace', ' ', '_') | list }} {{ tools | map(attribute='function.name') | list }} {{ [1] | map(attribute='x', default='d') | list }} {{ [[1, 2], [3]] | map('sum') | list }} {{ [[5], [6]] | map(attribute=0) | list }}",
  "{{ ['a', '', none] | select | list }} {{ [1, 'a', 2.0] | select('string') | list }} {{ [1, 2, 3, 4] | reject('even') | list }} {{ [1, 2, 3] | select('gt', 1) | list }} {{ [1, 2, 3] | select('in', [1, 3]) | list }} {{ [1, 2] | reject('==', 1) | list }} {{ [3, 4, 6] | select('divisibleby', 3) | list }}",
  "{{ (messages | selectattr('role', 'in', ['tool', 'user']) | first).content }} {{ messages | rejectattr('role', '==', 'user') | map(attribute='role') | list }} {{ messages | selectattr('tool_calls', 'defined') | list | length }} {{ messages | selectattr('tool_calls') | list | length }} {{ messages | selectattr('role', 'ne', 'user') | list | length }} {{ tools | selectattr('function.name', 'eq', 'f') | list | length }} {{ messages | rejectattr('tool_calls', 'undefined') | list | length }}",
  "{{ [1, 2, 3] | sum }} {{ [1, 2.5] | sum(start=1) }} {{ [{'a': 1}, {'a': 2}] | sum(attribute='a') }} {{ [[1], [2]] | sum(start=[]) }} {{ [1, 2, 3, 4, 5] | batch(2) | list }} {{ [1, 2, 3] | batch(2, 'x') | list }} {{ [1, 2] | batch(0) | list }} {{ none | map('upper') | list }} {{ none | select | list }} {{ 'abc' | first }} {{ 'abc' | last }} {{ [] | first }}. {{ {'a': 1} | first }} {{ {'a': 1} | length }} {{ 'é😀' | count }}",
  "{% for g in messages | groupby('role') %}{{ g.grouper }}{{ g.list | length }}{{ g[0] }};{% endfor %}{% for role, some in messages | groupby('role') %}{{ role }}{{ some | length }}{% endfor %}{{ [{'a': 'x'}, {'a': 'X'}, {}] | groupby('a', default='z') }}",
  "{{ '<a href=\"x\">&\\'</a>' | escape }} {{ '<' | e }} {{ '<a>' | safe }} {{ 'a b/é?!(x)' | urlencode }} {{ 'ab cd_e é' | wordcount }} {{ 'hello world' | truncate(5) }} {{ 'hello big world' | truncate(11, leeway=0) }} {{ 'hello world' | truncate(6, true, '…') }} {{ 'abc' | center(9) }}. {{ 'ab' | center(5) }}. {{ '%s is %d' | format('a', 3) }} {{ '%(x)s' | format(x=1.0) }}",
  "{{ 'a\\n\\nb' | indent }} {{ 'a\\n\\nb' | indent(2, true) }} {{ 'a\\n\\nb' | indent(2, blank=true) }} {{ 'a\\nb' | indent('> ', first=true) }} {{ 'aXa' | replace('a', 'b') }} {{ 'aaa' | replace('a', 'b', 2) }} {{ 'ab' | replace('', '-') }} {{ 12 | replace(1, 3) }} {{ 'xax' | trim('x') }}",
  "{{ 'a' < 'b' }} {{ 'b' >= 'a' }} {{ [1, 2] < [1, 3] }} {{ 1 < 2 < 3 }} {{ 3 > 2 > 1 }} {{ 1 < 3 < 2 }} {{ (1 < 2) == true }} {{ 1 == 1.0 }} {{ 'a' in 'abc' }} {{ 'k' in {'k': 1} }} {{ 1 in {'k': 1} }} {{ 'z' not in ['a'] }} {{ 1 not in [2] == true }} {{ none in [none] }} {{ 'x' in nothing }} {{ 1 in (1, 2) and 2 in [2] }} {{ [1 < 2, 2 < 1] }}",
  "{{ 1 < 'a' }}",
  "{{ 1 in 'a' }}",
  "{{ '%s-%d' % ('a', 3) }} {{ 'x%s' % 'a' }} {{ '%.2f|%5.1f|%-6s|%06.2f|%+d|%%|%r|%5d|%05d' % (1.234, 2.25, 'ab', 3.14159, 4, 'q', 42, -42) }} {{ '%s' % [1, 2] }} {{ '%s' % none }} {{ '%d' % 3.9 }} {{ '%.0f %.1f %.3s' % (0.5, 0.25, 'abcdef') }} {{ '%(a)s' % {'a': 1} }}",
  "{{ '%s %s' % ('a',) }}",
  "{{ '%s' % ('a', 'b') }}",
  "{{ 'x{}y{}'.format(1, 2.0) }} {{ '{1}{0}{name}{{}}'.format('a', 'b', name=none) }} {{ 'a' is eq 'a' }} {{ 'a' is in ['a'] }} {{ 4 is divisibleby 2 }} {{ 4 is divisibleby(3) }} {{ 1 is not in [1] }} {{ 1 is ne 2 and true }} {{ not 1 is eq 1 }} {{ 'x' if 5 is gt 4 else 'y' }} {{ 3 is ge 3 }} {{ 1 is sameas true }} {{ messages[0].role is eq messages[0]['role'] }} {{ 'a' is in(['a']) }}",
  "{{ 'abcb'.find('b') }} {{ 'abcb'.rfind('b') }} {{ '😀b'.find('b') }} {{ 'abc'.find('z') }} {{ 'abcb'.find('b', 2) }} {{ 'abab'.count('ab') }} {{ 'abc'.index('c') }} {{ ','.join(['a', 'b']) }} {{ 'x'.join('abc') }} {{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'a'.partition('-') }} {{ 'a\\nb\\r\\nc\\n'.splitlines() }} {{ 'a\\nb'.splitlines(true) }} {{ 'a\\u2028b\\x1cc'.splitlines() }}",
  "{{ '5'.isdigit() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ ''.isdigit() }} {{ 'aé'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' \\t'.isspace() }} {{ 'AB1'.isupper() }} {{ 'Ab'.isupper() }} {{ 'ab-1'.islower() }} {{ '1'.islower() }} {{ 'abc'.zfill(5) }} {{ '-4'.zfill(4) }} {{ 'a'.center(4) }}. {{ 'ab'.center(5, '*') }} {{ 'a'.ljust(3) }}. {{ 'a'.rjust(3, '.') }} {{ 'unhappy'.removeprefix('un') }} {{ 'a.py'.removesuffix('.py') }} {{ 'aaa'.replace('a', 'b', 1) }} {{ 'ab'.replace('', '.') }}",
  "{{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith(('c', 'd')) }} {{ 'abc'.startswith('b', 1) }} {{ 'abc'.startswith(['a']) if false }} {{ [1, 2, 1].count(1) }} {{ [1, 2].index(2) }} {{ {'a': 1}.get('b', 'd') }} {{ {'a': 1}.get('z') }} {{ {'a': 1}.get(1) }} {{ dict(a=1, b='x') }} {{ dict([('a', 1)], b=2) }} {{ dict({'a': 1}) | tojson }}",
  "{{ 'abc'.startswith(['a']) }}",
  "{% set l = [] %}{% set _ = l.append(1) %}{{ l }}",
  "{{ {'a': 1}.update({'b': 2}) }}",
  "{% filter upper %}abc{{ messages[0].role }}{% endfilter %}{% filter replace('a', 'b') %}aa{% endfilter %}",
  "{% set x %}abc {{ messages[0].role }}{% endset %}{{ x | replace('a', 'b') }}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c, d = (3, 4) %}{{ c }}{{ d }}",
  "{{ 'a' if false }}|{{ nothing }}|{{ nothing is defined }}|{{ (messages[0].nokey or {}).deep }}|{{ messages[0].nokey.deep if messages[0].nokey }}|{{ not nothing }}|{{ nothing | list }}|{{ nothing | length }}",
  "{{ 'ab' | dictsort }}",
  "{{ nothing.x }}",
  "{{ nothing + 'a' }}",
  "{{ none | length }}",
  "{{ 5 | length }}",
  "{% for x in none %}{% endfor %}",
  "{{ messages | selectattr('role', 'nonsense') | list }}",
];

it.skipIf(why)(`statements, filters, tests and methods are Jinja's and Python's${why}`, async () => {
  expect(await differing(ofLanguage)).toEqual([]);
});

it.each([
  ["{{ 3 | pprint }}", "the filter 'pprint' of Jinja is not known here"],
  ["{{ [3] | map('wordwrap') | list }}", "the filter 'wordwrap' of Jinja is not known here"],
  ["{{ 'a' is escaped }}", "the test 'escaped' of Jinja is not known here"],
  ["{{ messages | selectattr('role', 'filter') | list }}", "the test 'filter' of Jinja is not known here"],
  ["{{ messages[0].content.swapcase() }}", "the method 'swapcase' of a str is not known here"],
  ["{{ [1].insert(0, 1) }}", "the method insert changes a list, which transformers refuses in a template"],
  ["{{ render(1) }}", "the function 'render' is not known here"],
  ["{{ cycler(1) }}", "the function 'cycler' of Jinja is not known here"],
  ["a\n{{ 1 }}\n{{ 2 | pprint }}", "the filter 'pprint' of Jinja is not known here (line 3 of the template)"],
  ["{% include 'x' %}", "Unknown statement type: include"],
])("names what it does not know: %s", (template, message) => {
  expect(() => compileChat(template, { special: {} })([{ role: "user", content: "" }], { prompt: false })).toThrow(
    message,
  );
});

it("keys that are numbers keep their order inside of a row, and change nothing about the row itself", () => {
  const value = exactJson(
    '{"0": 1, "messages": [{"role": "user", "9": 2, "content": "a \\"1\\": b"}], "x": {"b": 1, "1": []}}',
  );
  const inner = new Map<string, unknown>([
    ["b", 1n],
    ["1", []],
  ]);
  const message = new Map<string, unknown>([
    ["role", "user"],
    ["9", 2n],
    ["content", 'a "1": b'],
  ]);
  expect(value).toEqual({ 0: 1n, messages: [message], x: inner });
  const read = rowForm({}, value, "row 1").read(value, "row 1");
  expect(read).toEqual({ messages: [Object.fromEntries(message)] });
});

it("refuses a {% with %} that is not closed", () => {
  const render = () => compileChat("{% with x = 1", { special: {} });
  expect(render).toThrow();
});
