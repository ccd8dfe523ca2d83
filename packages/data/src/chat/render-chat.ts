/** Renders chat templates with Hugging Face's Jinja in JavaScript, as transformers' apply_chat_template does. */

import { PythonInterpreter } from "./jinja/interpreter.ts";
import { Environment, type Node, parse, type Scope, type Value } from "./jinja/library.ts";
import { NotKnown } from "./jinja/not-known.ts";
import { strftime } from "./jinja/strftime.ts";
import { readableTokens, withoutRaw } from "./jinja/tokens.ts";
import { callable, dict, isMap, itemsOf, valueInRow } from "./jinja/values.ts";

/** A message with its role and content, and whatever else a template may read. Integers are bigints (read-json.ts). */
export type Message = Readonly<Record<string, unknown>>;

export interface Rendering {
  readonly text: string;
  /** Begins and ends of what an assistant has written, where the template says it. Places are UTF-16 units. */
  readonly answers: readonly (readonly [begin: number, end: number])[];
}

export interface RenderOptions {
  readonly special: Readonly<Record<string, string>>;
  readonly date?: string | undefined; // YYYY-MM-DD
}

/** `variables` are a row's own, for the template. */
export type Render = (
  messages: readonly Message[],
  more: { prompt: boolean; tools?: unknown; variables?: Readonly<Record<string, unknown>> | undefined },
) => Rendering;

export const mostLetters = 1 << 20; // of a row

const block = /\{%(-?)\s*(end)?generation\s*(-?)%\}/g;

/** Whether a template marks what an assistant has written: {% generation %} … {% endgeneration %}, in no comment. */
export const marksAnswers = (template: string): boolean => template.replaceAll(/\{#.*?#\}/gs, "").search(block) >= 0;

/**
 * Compiles a template. Throws what the library says of one that it cannot read; so does the result, of messages that
 * the template refuses.
 */
export function compileChat(template: string, { special, date }: RenderOptions): Render {
  // No text has these: they tell where a marked block begins and ends, and are taken out of the result.
  const nonce = crypto.randomUUID();
  const [begin, end] = [`\u0001${nonce}<\u0001`, `\u0001${nonce}>\u0001`];
  const macro = `{% macro terse_generation() %}${begin}{{ caller() }}${end}{% endmacro %}`;
  // Jinja reads every end of a line as a newline.
  const calls = withoutRaw(template.replaceAll(/\r\n?/g, "\n")).replace(block, (_, left, ends, right) =>
    ends ? `{%${left} endcall ${right}%}` : `{%${left} call terse_generation() ${right}%}`,
  );
  const program = parse(readableTokens(calls));
  program.body.unshift(...parse(readableTokens(macro)).body);
  return (messages, { prompt, tools, variables }) => {
    const environment = new Environment();
    environment.setVariable("dict", callable(newDict));
    for (const name of ["cycler", "joiner", "lipsum"]) environment.setVariable(name, callable(unknown(name)));
    const functions = { range, raise_exception: refuse, strftime_now: (format: string) => now(date, format) };
    for (const [name, value] of Object.entries(functions)) environment.set(name, value);
    const values = {
      ...constants,
      ...special,
      ...variables,
      messages: messages.map(asTemplatesExpect),
      tools: tools ?? null,
      documents: null,
      add_generation_prompt: prompt,
    };
    for (const [name, value] of Object.entries(values)) environment.setVariable(name, valueInRow(value));
    const marked = run(program, environment, template);
    const { length } = marked;
    if (length > mostLetters) throw new Error(`it writes ${length} letters, and a row has at most ${mostLetters}`);
    return withoutMarks(marked, begin, end);
  };
}

function run(program: Node, environment: Scope, template: string): string {
  try {
    return String(new PythonInterpreter(environment).run(program).value);
  } catch (error) {
    throw error instanceof NotKnown ? error.in(template) : error;
  }
}

function withoutMarks(marked: string, begin: string, end: string): Rendering {
  const answers: [number, number][] = [];
  let [text, from] = ["", 0];
  for (const [i, part] of marked.split(begin).entries()) {
    const [inside, ...behind] = i === 0 ? [part] : part.split(end);
    from = text.length;
    text += inside;
    if (i > 0) answers.push([from, text.length]);
    text += behind.join("");
  }
  return { text, answers };
}

const constants = { true: true, false: false, none: null, True: true, False: false, None: null };

/** dict(…) of pairs, of another one, and of names. */
function newDict([from]: readonly Value[], named: ReadonlyMap<string, Value>): Value {
  const pairs = from === undefined ? [] : isMap(from) ? [...from.value] : itemsOf(from).map(pairOf);
  return dict([...pairs, ...named]);
}

function pairOf(item: Value): [string, Value] {
  const [key, value, ...others] = itemsOf(item);
  if (typeof key?.value !== "string" || value === undefined || others.length > 0)
    throw new Error("dict is of pairs of a text and a value");
  return [key.value, value];
}

/** Functions of Jinja that no chat template is known to use. */
const unknown = (name: string) => (): never => {
  throw new NotKnown(`the function '${name}' of Jinja`, name);
};

function refuse(message: unknown): never {
  throw new Error(String(message));
}

function now(date: string | undefined, format: string): string {
  if (date !== undefined) return strftime(date, format);
  const today = new Date().toISOString().slice(0, 10);
  throw new Error(
    `it writes the date of the day, with which a run that goes on tomorrow would read other rows: set data.date, such as ${today}`,
  );
}

const longestRange = 100_000; // as in Jinja's sandbox

/** Python's range. */
function range(first: number, last?: number, step = 1): number[] {
  const [begin, end] = last === undefined ? [0, first] : [first, last];
  const length = Math.max(0, Math.ceil((end - begin) / step));
  if (!(length <= longestRange)) throw new Error(`a range has at most ${longestRange} numbers, and not ${length}`);
  return Array.from({ length }, (_, i) => begin + i * step);
}

const reasoning = ["reasoning_content", "thinking", "reasoning"];

/** As transformers gives messages to templates: without keys that have no value, and reasoning by each of its names. */
function asTemplatesExpect(message: Message): Message {
  const given = Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null));
  const found = reasoning.map((key) => given[key]).find((value) => value !== undefined);
  return found === undefined ? given : { thinking: found, ...given, reasoning_content: found };
}
